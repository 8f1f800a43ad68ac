// Package alerts tries out the alerts and dashboards of the chart and of PathFence.
package alerts

import (
	"encoding/json"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
)

const (
	repository = "../.."
	chart      = repository + "/charts/temper/files"
	fences     = repository + "/pathfence/monitoring"
)

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// rules are the alerts of a folder, as Prometheus itself reads and checks them.
func rules(t *testing.T, folder string) map[string]rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.ParseFile(folder+"/alerts.yaml", false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	if errs != nil {
		t.Fatal(errs)
	}
	found := map[string]rulefmt.Rule{}
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			found[rule.Alert] = rule
		}
	}
	return found
}

// An alert is raised by what it is for, and by nothing that is as it should be.
func TestAlerts(t *testing.T) {
	const well = `
load 1m
  temper_enforced{instance="n"} 1x30
  temper_condition{instance="n",condition="LimitsHonoured",reason="Temper"} 1x30
  temper_condition{instance="n",condition="Sized",reason="Fits"} 1x30
  kube_daemonset_status_desired_number_scheduled{namespace="s",daemonset="temper-agent"} 3x30
  kube_daemonset_status_number_ready{namespace="s",daemonset="temper-agent"} 3x30
  kube_daemonset_status_desired_number_scheduled{namespace="s",daemonset="other"} 3x30
  kube_daemonset_status_number_ready{namespace="s",daemonset="other"} 0x30
  kube_deployment_status_replicas_available{namespace="s",deployment="temper-controller"} 2x30
  temper_overcommit_guarded{reason="Calm"} 0x30
  temper_overcommit_ready{reason="InForce"} 1x30
  temper_scheduler_failures{instance="n"} 0x30
  temper_problems{instance="n"} 0x30
  temper_heartbeat_age_seconds{instance="n"} 0.1x30
  temper_real_time_cpus{instance="n",starving="true"} 0x30
  temper_real_time_cpus{instance="n",starving="false"} 2x30
  temper_tier_longest_wait_seconds{instance="n",tier="critical"} 0+0.01x30
  temper_tier_longest_wait_seconds{instance="n",tier="background"} 0+0.5x30
  temper_gap_overrun_seconds_bucket{instance="n",le="0.0005"} 0+1000x30
  temper_gap_overrun_seconds_bucket{instance="n",le="0.002"} 0+1000x30
  temper_gap_overrun_seconds_bucket{instance="n",le="+Inf"} 0+1000x30
`
	const off = `
load 1m
  temper_enforced{instance="n"} 0x30
  temper_off{instance="n",reason="SafeModeNode"} 1x30
  temper_condition{instance="n",condition="LimitsHonoured",reason="Ignored"} 0x30
  temper_overcommit_ready{reason="Guarded"} 0x30
  temper_problems{instance="n"} 0x30
`
	alerts := rules(t, chart)
	tryOut(t, alerts, map[string]string{"well": well, "off": off}, map[string]raising{
		"TemperNotEnforced": {`temper_enforced{instance="n"} 0x30`, 0},
		"TemperNoAgents":    {`up{instance="n"} 1x30`, 1},
		"TemperAgentMissing": {"kube_daemonset_status_desired_number_scheduled{namespace=\"s\",daemonset=\"temper-agent\"} 3x30\n" +
			"  kube_daemonset_status_number_ready{namespace=\"s\",daemonset=\"temper-agent\"} 1x30", 2},
		"TemperLimitsNotHonoured": {`temper_condition{instance="n",condition="LimitsHonoured",reason="TooManyCgroups"} 0x30`, 0},
		"TemperNotSized":          {`temper_condition{instance="n",condition="Sized",reason="TooMuchCritical"} 0x30`, 0},
		"TemperSchedulerFails":    {`temper_scheduler_failures{instance="n"} 3x30`, 3},
		"TemperHeartbeatOld":      {"temper_enforced{instance=\"n\"} 1x30\n  temper_heartbeat_age_seconds{instance=\"n\"} 7x30", 7},
		"TemperProblems":          {`temper_problems{instance="n"} 2x30`, 2},
		"TemperWaitTooLong":       {`temper_tier_longest_wait_seconds{instance="n",tier="critical"} 1x20 3x9`, 3},
		"TemperWatchdogNear":      {`temper_wait_under_way_seconds{instance="n",for="one CPU"} 0x20 11x9`, 11},
		"TemperOvercommitPaused":  {`temper_overcommit_guarded{reason="UseTooHigh"} 1x30`, 1},
		"TemperOvercommitFails":   {`temper_overcommit_ready{reason="Invalid"} 0x30`, 0},
		"TemperControllerMissing": {`kube_deployment_status_replicas_available{namespace="s",deployment="temper-controller"} 0x30`, 0},
		"TemperRealTimeStarves":   {"temper_real_time_cpus{instance=\"n\",starving=\"false\"} 3x30\n  temper_real_time_cpus{instance=\"n\",starving=\"true\"} 2x30", 2},
		"TemperGapOverrun": {"temper_gap_overrun_seconds_bucket{instance=\"n\",le=\"0.002\"} 0x30\n" +
			"  temper_gap_overrun_seconds_bucket{instance=\"n\",le=\"0.004\"} 0+100x30\n  temper_gap_overrun_seconds_bucket{instance=\"n\",le=\"+Inf\"} 0+100x30", 0.004},
	})
	// An old wait raises nothing: the figure never falls.
	if raised := query(t, "load 1m\n  temper_tier_longest_wait_seconds{instance=\"n\",tier=\"critical\"} 3x30", alerts["TemperWaitTooLong"].Expr); len(raised) > 0 {
		t.Errorf("a wait of half an hour ago: %v", raised)
	}
}

// raising is what raises an alert, as series of one sample a minute, and the value that it then has.
type raising struct {
	series string
	value  float64
}

// tryOut says of each alert whether its case raises it, and nothing else does.
func tryOut(t *testing.T, alerts map[string]rulefmt.Rule, quiet map[string]string, cases map[string]raising) {
	t.Helper()
	for name, rule := range alerts {
		c, ok := cases[name]
		if !ok {
			t.Errorf("%s is not tried out", name)
			continue
		}
		for what, input := range quiet {
			if raised := query(t, input, rule.Expr); len(raised) > 0 {
				t.Errorf("%s is raised where all is %s: %v", name, what, raised)
			}
		}
		raised := query(t, "load 1m\n  "+c.series, rule.Expr)
		if len(raised) != 1 || raised[0].F < c.value*0.99 || raised[0].F > c.value*1.01 {
			t.Errorf("%s: %v, not %v", name, raised, c.value)
		}
	}
	if len(alerts) != len(cases) {
		t.Errorf("%d alerts, %d cases", len(alerts), len(cases))
	}
}

// query evaluates an expression 25 minutes after the first sample.
func query(t *testing.T, input, expression string) promql.Vector {
	t.Helper()
	storage := promqltest.LoadedStorage(t, input)
	engine := promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery)
	q, err := engine.NewInstantQuery(t.Context(), storage, nil, expression, time.Unix(25*60, 0))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	vector, err := q.Exec(t.Context()).Vector()
	if err != nil {
		t.Fatal(err)
	}
	return slices.Clone(vector)
}

func TestRunbooks(t *testing.T) {
	for folder, page := range map[string]string{chart: "docs/runbooks.md", fences: "pathfence/monitoring/README.md"} {
		book := read(t, repository+"/"+page)
		for name, rule := range rules(t, folder) {
			if !strings.Contains(book, "\n## "+name+"\n") || rule.Annotations["runbook"] != page+"#"+strings.ToLower(name) {
				t.Errorf("%s has no runbook", name)
			}
		}
	}
}

var documented = regexp.MustCompile("(?m)^\\| `(temper_[a-z0-9_]+)` \\| (\\w+) ")

// metrics are those that pages of the reference have, by their names in expressions.
func metrics(t *testing.T, pages ...string) []string {
	t.Helper()
	var names []string
	for _, page := range pages {
		for _, m := range documented.FindAllStringSubmatch(read(t, repository+"/docs/reference/"+page), -1) {
			name := m[1]
			if m[2] == "histogram" {
				name += "_bucket"
			}
			names = append(names, name)
		}
	}
	return names
}

// What alerts and dashboards ask for is served, by agents, kube-state-metrics or a fence.
func TestExpressionsNameMetricsThatThereAre(t *testing.T) {
	onNodes := append(metrics(t, "metrics.md", "agent-metrics.md", "controller-metrics.md"), "kube_deployment_status_replicas_available", "kube_daemonset_status_desired_number_scheduled", "kube_daemonset_status_number_ready")
	for folder, served := range map[string][]string{chart: onNodes, fences: fenceMetrics(t)} {
		for _, expression := range expressions(t, folder) {
			// What Grafana puts in.
			expression = strings.NewReplacer("$__rate_interval", "5m", "$node", "n", "$job", "j", "$instance", "i").Replace(expression)
			for _, name := range asked(t, expression) {
				if !slices.Contains(served, name) {
					t.Errorf("%s: nobody serves %s", expression, name)
				}
			}
		}
	}
}

// asked are the metrics that an expression asks for.
func asked(t *testing.T, expression string) (names []string) {
	t.Helper()
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expression)
	if err != nil {
		t.Errorf("%s: %v", expression, err)
		return nil
	}
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		if selector, ok := node.(*parser.VectorSelector); ok {
			names = append(names, selector.Name)
		}
		return nil
	})
	return names
}

var tabled = regexp.MustCompile("(?m)^\\| \\[(Temper\\w+)\\]\\(runbooks\\.md#(\\w+)\\) \\| `([^`]+)` \\|")

// The table for hosts has each alert that asks only for what any node serves, as the chart has it.
func TestAlertsOfAHostAreTabled(t *testing.T) {
	served := metrics(t, "metrics.md")
	want := map[string]string{}
	for name, rule := range rules(t, chart) {
		if !slices.ContainsFunc(asked(t, rule.Expr), func(metric string) bool { return !slices.Contains(served, metric) }) {
			want[name] = rule.Expr
		}
	}
	got := map[string]string{}
	for _, row := range tabled.FindAllStringSubmatch(read(t, repository+"/docs/operations.md"), -1) {
		got[row[1]] = row[3]
		if row[2] != strings.ToLower(row[1]) {
			t.Errorf("%s leads to %s", row[1], row[2])
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("docs/operations.md has\n%q\nand the chart\n%q", got, want)
	}
}

// expressions are those of a folder's alerts and dashboard.
func expressions(t *testing.T, folder string) (list []string) {
	t.Helper()
	for _, rule := range rules(t, folder) {
		list = append(list, rule.Expr)
	}
	var dashboard struct {
		Panels []struct {
			Title, Description string
			Targets            []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, folder+"/dashboard.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, panel := range dashboard.Panels {
		if panel.Title == "" || panel.Description == "" || len(panel.Targets) == 0 {
			t.Errorf("panel %q says nothing, or not what", panel.Title)
		}
		for _, target := range panel.Targets {
			list = append(list, target.Expr)
		}
	}
	return list
}
