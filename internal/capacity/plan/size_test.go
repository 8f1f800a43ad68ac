//go:build scale

package plan_test

import (
	"context"
	"flag"
	"runtime"
	"runtime/metrics"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"temper.dev/temper/internal/capacity/plan"
	"temper.dev/temper/internal/capacity/sample"
)

var (
	nodes = flag.Int("nodes", 1000, "nodes of the large cluster")
	pods  = flag.Int("pods", 20000, "its pods")
	level = flag.Float64("level", 0.5, "the share of its CPUs that is requested")
	limit = flag.Duration("limit", time.Minute, "how long the planner may search")
)

// What a plan takes for a large cluster, shaped after public traces. It prints figures, and asserts no times.
func TestSize(t *testing.T) {
	begun := time.Now()
	s, err := sample.Fleet(1, *nodes, *pods, *level)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d nodes and %d pods made in %.0f s; %d of them pending", len(s.Nodes), len(s.Pods), time.Since(begun).Seconds(), len(pending(s)))
	runtime.GC()
	t.Logf("heap with the snapshot alone: %d MiB", inUse())
	begun, used := time.Now(), cpuTime(t)
	ctx, cancel := context.WithTimeout(t.Context(), *limit)
	defer cancel()
	p, err := plan.Make(ctx, s, plan.Options{Improved: func(p *plan.Plan) {
		t.Logf("after %5.1f s (%.0f s of CPU): %d nodes -> %d (bound %d, +%.1f %%), %d moves, %d decisions, %d MiB in use", time.Since(begun).Seconds(), (cpuTime(t) - used).Seconds(),
			p.NodesBefore, p.NodesAfter, p.AtLeast, 100*(float64(p.NodesAfter)/float64(p.AtLeast)-1), p.Moves(), p.Decisions, inUse())
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("ended after %.1f s (%.0f s of CPU): %d nodes, %d vCPU saved, %d moves, %d decisions; the process has taken %d MiB of the system at most",
		time.Since(begun).Seconds(), (cpuTime(t) - used).Seconds(), p.NodesAfter, p.SavedMilliCPU/1000, p.Moves(), p.Decisions, taken())
}

// cpuTime is what the process has used. On a host that does other things, too, it says more than the time that has passed.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// inUse is the memory that objects take, in MiB.
func inUse() uint64 { return read("/memory/classes/heap/objects:bytes") >> 20 }

// taken is what the runtime has taken of the system and not given back, in MiB.
func taken() uint64 {
	return (read("/memory/classes/total:bytes") - read("/memory/classes/heap/released:bytes")) >> 20
}

func read(name string) uint64 {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
