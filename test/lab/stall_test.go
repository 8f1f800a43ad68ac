//go:build lab

package lab

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"

	"temper.dev/temper/internal/evidence/bench"
)

const stalls = `name: stalls
services:
  - name: server
    command: [./server, /etc/page]
    environment: {LAST_REQUEST: 1000000, STALL: 100ms}
    files: {/etc/page: {text: hello}}
    ready: 8080
client:
  http: {url: "http://localhost:8080/page", connections: 1}
rate: 50
arms: [eevdf]
steps: [0]
seconds: 8
warmUp: 1
`

// drand48 is the C library's, seeded as srand48() does.
type drand48 uint64

func seeded(seed uint64) drand48 { return drand48(seed<<16 | 0x330e) }

func (d *drand48) next() float64 {
	*d = (*d*0x5deece66d + 0xb) & (1<<48 - 1)
	return float64(*d) / (1 << 48)
}

// arrivals are when the client's requests were due in the window, in ms from its start (the load folder's load.h).
func arrivals(seed uint64, rate, settle, seconds float64) (due []float64) {
	random := seeded(seed)
	for at := 0.0; ; {
		at += -math.Log(1-random.next()) / rate * 1000
		if at >= (settle+seconds)*1000 {
			return due
		}
		if at >= settle*1000 {
			due = append(due, at)
		}
	}
}

// latenciesOf a server that answers nothing for the first 100 ms of each 250 ms, and otherwise one request after another, each in
// the time that one takes. first is when a stall begins.
func latenciesOf(due []float64, first, takes float64) []float64 {
	latencies := slices.Clone(due)
	free := 0.0 // when the connection is
	for i, at := range due {
		begins := max(at, free)
		begins += max(0, 100-math.Mod(begins-first+250, 250))
		free = begins + takes
		latencies[i] = free - at
	}
	slices.Sort(latencies)
	return latencies
}

// What is late counts from when it was due: percentiles are those that follow from the arrivals and the stalls. When the
// first stall began is not known, and is what fits best.
func TestLatenciesOfAServerThatStalls(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	build(t, dir, "server")
	if err := os.WriteFile(filepath.Join(dir, "stalls.yaml"), []byte(stalls), 0o644); err != nil {
		t.Fatal(err)
	}
	run(t, dir, lab(t), "bench", "run", "stalls.yaml")
	record, err := bench.ReadRecord(filepath.Join(dir, "stalls-records", "stalls-2cpu-seed1.json"))
	if err != nil {
		t.Fatal(err)
	}
	step := record.Arms[0].Steps[0]
	due := arrivals(1000, 50, 0.3, 8)
	if step.Requests != len(due) {
		t.Fatalf("%d requests were answered, %d were due", step.Requests, len(due))
	}
	h, err := hdrhistogram.Decode([]byte(step.Histogram))
	if err != nil {
		t.Fatal(err)
	}
	takes := float64(h.ValueAtQuantile(25)) / 1e6 // more than half come in no stall
	worst := func(first float64) (off, at float64) {
		want := latenciesOf(due, first, takes)
		for _, quantile := range []float64{75, 80, 85, 90, 95, 99, 99.9, 100} {
			w := want[min(len(want)-1, int(math.Ceil(quantile/100*float64(len(want))))-1)]
			if o := math.Abs(float64(h.ValueAtQuantile(quantile))/1e6/w - 1); o > off {
				off, at = o, quantile
			}
		}
		return off, at
	}
	best, at := math.Inf(1), 0.0
	for first := 0.0; first < 250; first += 0.1 {
		if off, quantile := worst(first); off < best {
			best, at = off, quantile
		}
	}
	t.Logf("furthest off: p%g, by %.2f %%", at, 100*best)
	if best > 0.02 {
		t.Errorf("p%g is %.1f %% off from what follows from the stalls, at most 2 %%", at, 100*best)
	}
}
