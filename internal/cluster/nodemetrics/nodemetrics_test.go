package nodemetrics

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"

	"temper.dev/temper/internal/base/fixture"
	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/node/agent"
	"temper.dev/temper/internal/node/status"
)

func figuresOf(t *testing.T, root host.Root, cg, stat, pressure string) {
	t.Helper()
	fixture.Cgroup(t, root, cg)
	fixture.Write(t, root, "/sys/fs/cgroup"+cg+"/cpu.stat", stat)
	if pressure != "" {
		fixture.Write(t, root, "/sys/fs/cgroup"+cg+"/cpu.pressure", pressure)
	}
}

// nothing is what a look sees of a node without a scheduler.
func nothing() (*status.Status, error) { return &status.Status{}, nil }

// scrape is what Prometheus gets to read of an agent's state.
func scrape(t *testing.T, root host.Root, state agent.State) string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(Collector{root, func() (*agent.State, error) { return &state, nil }, nothing})
	return text(t, registry)
}

func text(t *testing.T, from prometheus.Gatherer) string {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, family := range families {
		if _, err := expfmt.MetricFamilyToText(&text, family); err != nil {
			t.Fatal(err)
		}
	}
	return text.String()
}

func TestPods(t *testing.T) {
	root := fixture.Tree(t, "/kubepods")
	const pressure = "some avg10=0.00 avg60=0.00 avg300=0.00 total=250000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n"
	figuresOf(t, root, "/kubepods/poda", "usage_usec 1500000\nuser_usec 1000000\nsystem_usec 500000\n", pressure)
	figuresOf(t, root, "/kubepods/podb", "usage_usec 4\n", "")
	figuresOf(t, root, "/nested/kubepods/podb", "usage_usec 2\n", "")
	got := scrape(t, root, agent.State{Members: []agent.Member{
		{Cgroup: "/kubepods/poda", Tier: tier.Critical, Pod: "shop/web", Present: true},
		{Cgroup: "/kubepods/podb", Tier: tier.Background, Pod: "batch/job", Present: true},
		{Cgroup: "/nested/kubepods/podb", Tier: tier.Background, Pod: "batch/job", Present: true},
		{Cgroup: "/kubepods/podgone", Tier: tier.Standard, Pod: "shop/gone", Present: true},
		{Cgroup: "/kubepods/podlater", Tier: tier.Standard, Pod: "shop/later"},
		{Cgroup: "/kubepods/poda", Tier: tier.System, Source: "config", Present: true},
	}})
	want := `# HELP temper_condition 1 where the TemperNode's condition is True, 0 where it is False. One that is Unknown has no series.
# TYPE temper_condition gauge
temper_condition{condition="Enforced",reason="Stopped"} 0
temper_condition{condition="LimitsHonoured",reason="Kernel"} 1
temper_condition{condition="SafeMode",reason="NotAsked"} 0
# HELP temper_pod_cpu_seconds_total CPU time that the pod used, as the kernel counts it for the pod's cgroup.
# TYPE temper_pod_cpu_seconds_total counter
temper_pod_cpu_seconds_total{namespace="batch",pod="job",tier="background"} 6e-06
temper_pod_cpu_seconds_total{namespace="shop",pod="web",tier="critical"} 1.5
# HELP temper_pod_waiting_seconds_total Time in which some task of the pod waited for a CPU (the kernel's PSI).
# TYPE temper_pod_waiting_seconds_total counter
temper_pod_waiting_seconds_total{namespace="shop",pod="web",tier="critical"} 0.25
# HELP temper_pods_omitted Pods beyond the 500th by name, which have no series.
# TYPE temper_pods_omitted gauge
temper_pods_omitted 0
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if found, err := promlint.New(strings.NewReader(got)).Lint(); err != nil || len(found) > 0 {
		t.Errorf("%v %v", found, err)
	}
}

func TestSeriesAreBounded(t *testing.T) {
	root := fixture.Tree(t, "/kubepods")
	figuresOf(t, root, "/kubepods/pod", "usage_usec 1\n", "")
	var members []agent.Member
	for i := range mostPods + 7 {
		members = append(members, agent.Member{Cgroup: "/kubepods/pod", Pod: fmt.Sprintf("many/p%03d", i), Present: true})
	}
	text := scrape(t, root, agent.State{Members: members})
	if n := strings.Count(text, "\n"+used.Name+"{"); n != mostPods || !strings.Contains(text, "\n"+omitted.Name+" 7\n") {
		t.Errorf("%d series in\n%s", n, text)
	}
}

// Conditions are those of the TemperNode, and one that nobody can tell is none.
func TestConditions(t *testing.T) {
	root := fixture.Tree(t, "/kubepods")
	for cpu := range 4 { // of two threads each
		fixture.Write(t, root, fmt.Sprintf("/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu), fmt.Sprintf("%d,%d", cpu%2, cpu%2+2))
	}
	for requested, want := range map[int64]string{1000: `reason="Fits"} 1`, 1001: `reason="TooMuchCritical"} 0`} {
		if text := scrape(t, root, agent.State{CriticalMilliCPU: requested}); !strings.Contains(text, `temper_condition{condition="Sized",`+want+"\n") {
			t.Errorf("%d thousandths of a CPU are requested: no %s in\n%s", requested, want, text)
		}
	}
}

// A scrape does not look as if there were no pods.
func TestNoAgent(t *testing.T) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(Collector{"/", func() (*agent.State, error) { return nil, errors.New("no agent runs") }, nothing})
	if _, err := registry.Gather(); err == nil || !strings.Contains(err.Error(), "no agent runs") {
		t.Error(err)
	}
}

// The node's own figures are there, too.
func TestGatherer(t *testing.T) {
	root := fixture.Tree(t, "/kubepods")
	figuresOf(t, root, "/kubepods/poda", "usage_usec 1500000\n", "")
	if err := host.WriteJSON(root.Run(agent.StateFile), agent.State{Members: []agent.Member{{Cgroup: "/kubepods/poda", Pod: "shop/web", Tier: tier.Critical, Present: true}}}); err != nil {
		t.Fatal(err)
	}
	said := func() (*agent.State, error) { return agent.ReadState(root) }
	got := text(t, Gatherer(root, said))
	for _, want := range []string{"\ntemper_enforced 0\n", "\n" + used.Name + `{namespace="shop",pod="web",tier="critical"} 1.5` + "\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if err := Serve(t.Context(), "nowhere", root, said); err == nil {
		t.Error("an address that is none is taken")
	}
}
