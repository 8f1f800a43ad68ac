package guard

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

var seedFlag = flag.Uint64("seed", 0, "of the random walks; 0: another one each time")

var (
	limits = Limits{FitPercent: 90, UsePercent: 85, LongWaitsPercent: 2, RecoverAfter: 10 * time.Minute}
	start  = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
)

// nodes are as many of each kind as a text says, as in "9 calm, 1 busy".
func nodes(t *testing.T, text string) (all []Node) {
	t.Helper()
	kinds := map[string]Node{
		"calm":    {Enforced: true, Load: &Load{Use: 0.75, LongWaits: 0.01}},
		"fit":     {Enforced: true, Load: &Load{Use: 0.85, LongWaits: 0.02}},
		"busy":    {Enforced: true, Load: &Load{Use: 0.86}},
		"waiting": {Enforced: true, Load: &Load{LongWaits: 0.021}},
		"bare":    {Load: &Load{}},
		"new":     {Enforced: true},
	}
	for _, part := range strings.Split(text, ", ") {
		var n int
		var kind string
		if _, err := fmt.Sscan(part, &n, &kind); err != nil {
			continue // none
		}
		node, ok := kinds[kind]
		if !ok {
			t.Fatalf("no kind %q", kind)
		}
		for i := range n {
			node.Name = fmt.Sprint(kind, "-", i)
			all = append(all, node)
		}
	}
	return all
}

func TestNext(t *testing.T) {
	lowering, fresh := State{Lowering: true}, State{}
	since := func(ago time.Duration) State { return State{CalmSince: start.Add(-ago)} }
	for _, c := range []struct {
		was     State
		nodes   string
		want    State
		reason  string
		message string
	}{
		{lowering, "10 calm", lowering, ReasonCalm, "10 of 10 nodes are fit"},
		{lowering, "10 fit", lowering, ReasonCalm, "10 of 10 nodes are fit"},
		{lowering, "9 fit, 1 busy", lowering, ReasonCalm, "9 of 10 nodes are fit"},
		{lowering, "8 calm, 2 busy", fresh, ReasonUseTooHigh, "8 of 10 nodes are fit; tiers above background use too much of busy-0, busy-1"},
		{lowering, "8 calm, 2 waiting", fresh, ReasonWaitsTooLong, "8 of 10 nodes are fit; standard waits too long on waiting-0, waiting-1"},
		{lowering, "8 calm, 2 bare", fresh, ReasonNotEnforced, "8 of 10 nodes are fit; tiers are not enforced on bare-0, bare-1"},
		{lowering, "7 calm, 1 bare, 2 waiting", fresh, ReasonWaitsTooLong, "7 of 10 nodes are fit; tiers are not enforced on bare-0; standard waits too long on waiting-0, waiting-1"},
		{lowering, "93 calm, 7 bare", lowering, ReasonCalm, "93 of 100 nodes are fit"},
		{lowering, "40 calm, 7 bare", fresh, ReasonNotEnforced, "40 of 47 nodes are fit; tiers are not enforced on bare-0, bare-1, bare-2, bare-3, bare-4 and 2 more"},
		{lowering, "10 new", lowering, ReasonCalm, "0 of 10 nodes are fit"}, // a controller that has just started
		{lowering, "8 new, 2 bare", fresh, ReasonNotEnforced, "0 of 10 nodes are fit; tiers are not enforced on bare-0, bare-1"},
		{lowering, "", fresh, ReasonNoNodes, "the policy selects no node"},
		{fresh, "", fresh, ReasonNoNodes, "the policy selects no node"},
		{fresh, "8 calm, 2 new", fresh, ReasonNotMeasured, "8 of 10 nodes are fit; not measured yet: new-0, new-1"},
		{fresh, "10 fit", fresh, ReasonRecovering, "10 of 10 nodes are fit; 0 are calm"},
		{fresh, "10 calm", since(0), ReasonRecovering, "10 of 10 nodes are fit; they are calm, and have to be until 2026-11-29T12:10:00Z"},
		{since(time.Minute), "9 calm, 1 bare", since(time.Minute), ReasonRecovering, "9 of 10 nodes are fit; they are calm, and have to be until 2026-11-29T12:09:00Z"},
		{since(10 * time.Minute), "10 calm", lowering, ReasonCalm, "10 of 10 nodes are fit"},
		{since(10 * time.Minute), "10 fit", fresh, ReasonRecovering, "10 of 10 nodes are fit; 0 are calm"},
		{since(10 * time.Minute), "8 calm, 2 busy", fresh, ReasonUseTooHigh, "8 of 10 nodes are fit; tiers above background use too much of busy-0, busy-1"},
		{since(-time.Hour), "10 calm", since(0), ReasonRecovering, "10 of 10 nodes are fit; they are calm, and have to be until 2026-11-29T12:10:00Z"},
	} {
		t.Run(fmt.Sprintf("%+v/%s", c.was, c.nodes), func(t *testing.T) {
			got := limits.Next(c.was, nodes(t, c.nodes), start)
			if got.State != c.want || got.Reason != c.reason || got.Message != c.message {
				t.Errorf("got %+v, want %+v, %s: %s", got, c.want, c.reason, c.message)
			}
		})
	}
}

// Whatever nodes do: requests are lowered only while enough nodes are fit or unknown; and after a pause only once they were
// calm at each look for long enough.
func TestRandomWalks(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	random := rand.New(rand.NewPCG(seed, 0))
	lowered, paused := 0, 0
	for walk := range 300 {
		l := Limits{FitPercent: 1 + random.IntN(100), UsePercent: 1 + random.IntN(100), LongWaitsPercent: 1 + random.IntN(100), RecoverAfter: time.Duration(random.IntN(5)) * time.Minute}
		count := random.IntN(12)
		var state State
		var calmSince time.Time // by the test's own account
		now := start
		for step := range 60 {
			now = now.Add(time.Duration(random.IntN(90)) * time.Second)
			all := randomNodes(random, count)
			unfit, calm := 0, 0
			for _, n := range all {
				tooMuch := n.Load != nil && (n.Load.Use*100 > float64(l.UsePercent) || n.Load.LongWaits*100 > float64(l.LongWaitsPercent))
				if !n.Enforced || tooMuch {
					unfit++
				} else if n.Load != nil && n.Load.Use*100 <= max(float64(l.UsePercent-10), float64(l.UsePercent)/2) && n.Load.LongWaits*100 <= float64(l.LongWaitsPercent)/2 {
					calm++
				}
			}
			isCalm := count > 0 && calm*100 >= l.FitPercent*count
			if !isCalm {
				calmSince = time.Time{}
			} else if calmSince.IsZero() {
				calmSince = now
			}
			got := l.Next(state, all, now)
			context := fmt.Sprintf("seed %d, walk %d, step %d: %+v, from %+v: %+v", seed, walk, step, l, state, got)
			mayLower := count > 0 && (count-unfit)*100 >= l.FitPercent*count
			switch {
			case got.Lowering && !mayLower:
				t.Fatalf("%s: lowered with %d of %d nodes unfit", context, unfit, count)
			case state.Lowering && mayLower && !got.Lowering:
				t.Fatalf("%s: paused for nothing", context)
			case !state.Lowering && got.Lowering != (isCalm && now.Sub(calmSince) >= l.RecoverAfter):
				t.Fatalf("%s: calm since %v, at %v", context, calmSince, now)
			case got.Lowering && !got.CalmSince.IsZero():
				t.Fatalf("%s: it waits for what it has", context)
			}
			if state.Lowering != got.Lowering {
				if got.Lowering {
					lowered++
				} else {
					paused++
				}
				calmSince = time.Time{}
			}
			state = got.State
		}
	}
	t.Logf("seed %d: lowered %d times, paused %d times", seed, lowered, paused)
	if lowered < 50 || paused < 50 {
		t.Errorf("seed %d: that tries out too little", seed)
	}
}

func randomNodes(random *rand.Rand, count int) (all []Node) {
	trouble := random.IntN(4)
	for i := range count {
		n := Node{Name: fmt.Sprint(i), Enforced: random.IntN(20) > trouble}
		if random.IntN(15) > 0 {
			n.Load = &Load{Use: random.Float64() * float64(1+trouble) / 4, LongWaits: random.Float64() * float64(trouble) / 20}
		}
		all = append(all, n)
	}
	return all
}

// Between the two thresholds, whatever was stays.
func TestNothingFlapsBetweenThresholds(t *testing.T) {
	for _, state := range []State{{Lowering: true}, {}} {
		now := start
		for i := range 100 {
			n := nodes(t, "10 fit")
			for j := range n {
				n[j].Load = &Load{Use: []float64{0.76, 0.85}[i%2], LongWaits: []float64{0.02, 0.011}[i%2]}
			}
			now = now.Add(time.Hour)
			got := limits.Next(state, n, now)
			if got.State != state {
				t.Fatalf("after %d looks %+v has become %+v", i, state, got)
			}
		}
	}
}

func TestMeter(t *testing.T) {
	at := func(seconds int, used float64, waits, long int64) Counters {
		return Counters{At: start.Add(time.Duration(seconds) * time.Second), CPUs: 4, Seconds: used, Waits: waits, LongWaits: long}
	}
	for _, c := range []struct {
		name string
		of   []Counters
		want *Load
	}{
		{"one report", []Counters{at(0, 100, 10, 1)}, nil},
		{"two, a minute apart", []Counters{at(0, 100, 10, 1), at(60, 220, 110, 6)}, &Load{Use: 0.5, LongWaits: 0.05}},
		{"two, too near", []Counters{at(0, 100, 10, 1), at(29, 220, 110, 6)}, nil},
		{"one too near keeps what was", []Counters{at(0, 0, 0, 0), at(60, 120, 0, 0), at(70, 160, 9, 9)}, &Load{Use: 0.5}},
		{"and counts later", []Counters{at(0, 0, 0, 0), at(60, 120, 0, 0), at(70, 160, 9, 9), at(120, 360, 10, 10)}, &Load{Use: 1, LongWaits: 1}},
		{"nobody waited", []Counters{at(0, 0, 5, 5), at(60, 24, 5, 5)}, &Load{Use: 0.1}},
		{"attached anew", []Counters{at(0, 100, 10, 1), at(60, 220, 20, 2), at(120, 3, 1, 0)}, nil},
		{"attached anew, and nobody waits", []Counters{at(0, 100, 0, 0), at(60, 3, 0, 0)}, nil},
		{"attached anew, and measured", []Counters{at(0, 100, 10, 1), at(60, 3, 1, 0), at(120, 123, 2, 1)}, &Load{Use: 0.5, LongWaits: 1}},
		{"no CPUs", []Counters{{At: start}, {At: start.Add(time.Minute), Seconds: 5}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var m Meter
			var got *Load
			for _, counters := range c.of {
				got = m.Read("n", counters)
			}
			if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
	var m Meter
	m.Read("a", at(0, 0, 0, 0))
	m.Read("b", at(0, 0, 0, 0))
	m.Keep(map[string]bool{"b": true})
	if names := slices.Sorted(maps.Keys(m.nodes)); !slices.Equal(names, []string{"b"}) {
		t.Errorf("it knows %v, want b alone", names)
	}
}
