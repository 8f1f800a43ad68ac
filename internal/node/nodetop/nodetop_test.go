package nodetop

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"temper.dev/temper/internal/base/fixture"
)

// What an agent serves of one node, and what 'temper status' says of it; a test there holds both to the code.
const served, said = "../status/testdata/alone.prom", "../status/testdata/alone.json"

const podSeries = `# TYPE temper_pod_cpu_seconds_total counter
temper_pod_cpu_seconds_total{namespace="shop",pod="web",tier="critical"} 5
temper_pod_cpu_seconds_total{namespace="batch",pod="job",tier="background"} 7.5
# TYPE temper_pod_waiting_seconds_total counter
temper_pod_waiting_seconds_total{namespace="shop",pod="web",tier="critical"} 0.25
`

var start = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func alone(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(served)
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + podSeries
}

// asked is a look at a node whose agent serves a text.
func asked(t *testing.T, node, text string, after time.Duration) Look {
	t.Helper()
	l := Look{Node: node, Time: start.Add(after), Live: true, Rung: "scx", Enforced: "yes"}
	if err := l.FromMetrics([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return l
}

func TestPercentilesAreThoseOfStatus(t *testing.T) {
	text, err := os.ReadFile(said)
	if err != nil {
		t.Fatal(err)
	}
	var status struct {
		Tiers []struct {
			P50 uint64 `json:"wait_p50_us"`
			P99 uint64 `json:"wait_p99_us"`
		}
		Gap struct {
			P50  uint64 `json:"p50_us"`
			P99  uint64 `json:"p99_us"`
			Back uint64 `json:"loan_back_p99_us"`
		}
	}
	if err := json.Unmarshal(text, &status); err != nil {
		t.Fatal(err)
	}
	l := asked(t, "a", alone(t), 0)
	for i, tier := range status.Tiers {
		if w := l.Tiers[i].Wait; w.P50US != tier.P50 || w.P99US != tier.P99 || tier.P99 == 0 {
			t.Errorf("%s: %+v, and status says %+v", l.Tiers[i].Tier, w, tier)
		}
	}
	if g := status.Gap; l.Overrun.P50US != g.P50 || l.Overrun.P99US != g.P99 || l.LoanBack.P99US != g.Back || g.Back == 0 {
		t.Errorf("%+v %+v, and status says %+v", l.Overrun, l.LoanBack, g)
	}
}

func TestPercentile(t *testing.T) {
	for _, c := range []struct {
		what    string
		buckets []bucket
		want    uint64
	}{
		{"none", nil, 0},
		{"no values", []bucket{{1e-6, 0}, {2e-6, 0}, {0, 0}}, 0},
		{"beyond the last edge", []bucket{{1e-6, 0}, {2e-6, 0}, {0, 5}}, 4},
		{"99 of 100 below", []bucket{{1e-6, 99}, {2e-6, 100}, {0, 100}}, 1},
		{"98 of 100 below", []bucket{{1e-6, 98}, {2e-6, 100}, {0, 100}}, 2},
		{"no edge at all", []bucket{{0, 5}}, 0},
	} {
		if got := percentile(c.buckets, 99); got != c.want {
			t.Errorf("%s: %d, want %d", c.what, got, c.want)
		}
	}
}

// Rates and percentiles are of the time between two looks, also where a scheduler was attached anew meanwhile.
func TestCompare(t *testing.T) {
	grown := strings.NewReplacer(" 196\n", " 296\n", " 200\n", " 300\n", "} 6\n", "} 7\n", "} 5\n", "} 6.5\n", "} 0.25\n", "} 0.75\n").Replace(alone(t))
	before := &Round{Nodes: []Look{asked(t, "a", alone(t), 0)}}
	now := &Round{Nodes: []Look{asked(t, "a", grown, 2*time.Second), asked(t, "new", alone(t), 0)}}
	Compare(before, now)
	a := now.Nodes[0]
	if o := a.Overrun; *o.Rate != 50 || o.Count != 300 || o.P99US != 32 {
		t.Errorf("%+v", o)
	}
	if c := a.tier("critical").CPU; *c.Rate != 0.5 || c.Total != 7 {
		t.Errorf("%+v", c)
	}
	if p := a.Pods[1]; p.Name != "shop/web" || *p.CPU.Rate != 0.75 || *p.Waiting.Rate != 0.25 {
		t.Errorf("%+v", p)
	}
	if now.Nodes[1].Overrun.Rate != nil {
		t.Error("a node has a rate at the first look")
	}

	anew := &Round{Nodes: []Look{asked(t, "a", alone(t), 4*time.Second)}}
	Compare(now, anew)
	if a := anew.Nodes[0]; *a.Overrun.Rate != 100 || a.Overrun.P99US != before.Nodes[0].Overrun.P99US || *a.tier("critical").CPU.Rate != 3 {
		t.Errorf("counted anew: %+v", a.Overrun)
	}

	lost := &Round{Error: "connection refused"}
	Compare(anew, lost)
	if len(lost.Nodes) != 1 {
		t.Error("what was seen is lost")
	}
}

func TestWhatIsNoMetrics(t *testing.T) {
	for text, want := range map[string]string{"<html>": "is no metrics", "# TYPE up gauge\nup 1\n": "is not Temper's"} {
		if err := (&Look{}).FromMetrics([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A tier's CPU time is the scheduler's figure, else that of its pods, else unknown: in the table, and in JSON.
func TestWhatNobodyCounts(t *testing.T) {
	const plain, web = "# TYPE temper_enforced gauge\ntemper_enforced 0\n", `# TYPE temper_pod_cpu_seconds_total counter
temper_pod_cpu_seconds_total{namespace="shop",pod="web",tier="critical"} 5
`
	for _, c := range []struct {
		what, text string
		cpu, shown string // of critical
		background string // of background, shown
	}{
		{"no scheduler, no pod", plain, "", "-", "-"},
		{"no scheduler, a pod", plain + web, `{"total":5}`, "5.0 s", "-"},
		{"a scheduler", alone(t), `{"total":6}`, "6.0 s", "12.0 s"},
	} {
		l := asked(t, "a", c.text, 0)
		critical := l.tier("critical")
		text, err := json.Marshal(critical)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]json.RawMessage
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if shown, background := critical.CPU.cpus(), l.tier("background").CPU.cpus(); string(got["cpu_seconds"]) != c.cpu || shown != c.shown || background != c.background {
			t.Errorf("%s: %s in JSON, %s and %s in the table; want %s, %s and %s", c.what, got["cpu_seconds"], shown, background, c.cpu, c.shown, c.background)
		}
	}
}

func TestTable(t *testing.T) {
	before := &Round{Nodes: []Look{asked(t, "a", alone(t), 0)}}
	busy := strings.NewReplacer("} 6\n", "} 7\n", "} 5\n", "} 6.5\n", "} 0.25\n", "} 0.75\n").Replace(alone(t))
	reported := Look{Node: "b", Time: start, Rung: "scx", Enforced: "unknown", WhyNot: "its agent serves no metrics (metrics.address of the chart)",
		Pods: []Pod{{Name: "shop/cart", Tier: "critical"}}, Tiers: []Tier{{Tier: "critical", Pods: 1, CPU: &Count{Total: 100}, Wait: &Times{P50US: 4, P99US: 256}}, {Tier: "background"}},
		Overrun: &Times{P99US: 64}, LoanBack: &Times{}}
	now := &Round{Time: start.Add(70 * time.Second), Nodes: []Look{asked(t, "a", busy, 2*time.Second), reported,
		{Node: "c", Enforced: "no (SafeModeNode)", Rung: "observe", WhyNot: "no agent's pod runs there"}}}
	Compare(before, now)
	var out bytes.Buffer
	for _, order := range Orders {
		out.WriteString("--- by " + order + "\n")
		Table{Order: order}.Write(&out, now)
	}
	out.WriteString("--- one, in colour, while the API server is away\n")
	Table{Order: "name", Tiers: true, Colour: true}.Write(&out, &Round{Time: start, Error: "connection refused", Nodes: now.Nodes[:1]})
	out.WriteString("--- in colour\n")
	Table{Order: "name", Colour: true}.Write(&out, now)
	out.WriteString("--- a node's own\n")
	own := now.Nodes[0]
	own.Problems = []string{"the cpu controller is off"}
	Table{Order: "cpu", Tiers: true, Own: true}.Write(&out, &Round{Time: start, Error: "the clock stands still", Nodes: []Look{own}})
	fixture.Golden(t, "tables.txt", out.String())
}

// One look has no escape sequences, on a terminal either: neither of the screen, nor of colour.
func TestOnceOnATerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	master, terminal := fixture.Terminal(t)
	var o Options
	cmd := &cobra.Command{}
	cmd.SetOut(terminal)
	o.AddFlags(cmd)
	o.once = true
	ended := make(chan error)
	go func() {
		err := o.Show(cmd, Table{Own: true}, func(context.Context) *Round { return &Round{Time: start, Nodes: []Look{asked(t, "a", alone(t), 0)}} })
		fmt.Fprintln(terminal, "end")
		ended <- err
	}()
	var got []string
	for lines := bufio.NewScanner(master); lines.Scan() && !strings.HasSuffix(lines.Text(), "end"); {
		got = append(got, lines.Text())
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if text := strings.Join(got, "\n"); strings.Contains(text, "\x1b") || !strings.HasPrefix(text, "12:00:00 · 2 cgroups\n") {
		t.Errorf("%q, want a table without escape sequences", text)
	}
}
