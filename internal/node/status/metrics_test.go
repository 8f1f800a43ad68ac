package status

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"

	"temper.dev/temper/internal/base/cgroup"
	"temper.dev/temper/internal/base/fixture"
	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/node/agent"
	"temper.dev/temper/internal/node/enforce"
)

// scrape is what Prometheus gets to read.
func scrape(t *testing.T, s *Status) []byte {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(Collector{Look: func() (*Status, error) { return s, nil }})
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	for _, family := range families {
		if _, err := expfmt.MetricFamilyToText(&text, family); err != nil {
			t.Fatal(err)
		}
	}
	return text.Bytes()
}

func withLimits(n int) *Status {
	maps, _ := snapshot()
	s := &Status{off: &agent.Off{Reason: agent.OffByFile}, Loader: &Loader{Reserves: true}, Gap: &Gap{}, Waits: []Wait{{For: "any CPU"}}, Tiers: make([]Tier, len(maps.Stats.Tier)), maps: maps}
	for i := range s.Tiers {
		s.Tiers[i].Tier = tier.Tier(i)
	}
	for i := range n {
		s.Limits = append(s.Limits, Limit{Cgroup: fmt.Sprintf("/pods/%d", i)})
	}
	return s
}

func TestMetricsAreNamedAsPrometheusWants(t *testing.T) {
	text := scrape(t, withLimits(1))
	found, err := promlint.New(bytes.NewReader(text)).Lint()
	if err != nil || len(found) > 0 {
		t.Errorf("%v %+v", err, found)
	}
	for _, m := range Metrics() {
		if !bytes.Contains(text, []byte("# TYPE "+m.Name+" "+m.Kind+"\n")) {
			t.Errorf("%s, a %s, is documented and not served", m.Name, m.Kind)
		}
	}
}

func TestSeriesOfLimitsAreBounded(t *testing.T) {
	text := scrape(t, withLimits(mostLimits+7))
	if n := bytes.Count(text, []byte("\ntemper_limit_cpus{")); n != mostLimits || !bytes.Contains(text, []byte("\ntemper_limits_omitted 7\n")) {
		t.Errorf("%d cgroups have series:\n%s", n, text)
	}
}

// Whoever may make a cgroup may give it any name: none spoils the scrape, or a line of the table.
func TestNamesThatAreNoTextStayApart(t *testing.T) {
	names := []string{"/a\xfe", "/a\xff", `/a\xff`, "/a\frung\tscx\fwhy\tscx_temper has attached"}
	root := fixture.Tree(t, names...)
	var limits []enforce.Limit
	for _, name := range names {
		id, err := cgroup.ID(root, name)
		if err != nil {
			t.Fatal(err)
		}
		limits = append(limits, enforce.Limit{Cgroup: id, PeriodNs: 1})
	}
	s := withLimits(0)
	s.addLimits(root, limits)
	if text := scrape(t, s); bytes.Count(text, []byte("\ntemper_limit_cpus{")) != len(names) {
		t.Errorf("%s", text)
	}
	var table bytes.Buffer
	s.Write(&table, Style{})
	for line := range bytes.Lines(table.Bytes()) {
		if bytes.HasPrefix(line, []byte("why")) && bytes.Contains(line, []byte("attached")) {
			t.Errorf("a cgroup's name is a line of the table:\n%s", &table)
		}
	}
}

func TestAFailedLookIsAFailedScrape(t *testing.T) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(Collector{Look: func() (*Status, error) { return nil, fmt.Errorf("no clock") }})
	if _, err := registry.Gather(); err == nil {
		t.Error("it went well")
	}
}
