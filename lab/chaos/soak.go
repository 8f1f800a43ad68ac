package chaos

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"temper.dev/temper/internal/base/host"
)

const (
	soakers            = 64    // background workers
	mostBackgroundUser = 0.001 // of the node, in user mode
)

// soak keeps all CPUs busy with critical work, beside background workers of all kinds that get next to
// nothing: for as long, nobody may stall, and what the kernel has to do must go on.
func (x *chaos) soak() error {
	if err := x.startSoakers(); err != nil {
		return err
	}
	before, err := userTime("/background")
	if err != nil {
		return err
	}
	start := time.Now()
	for time.Since(start) < x.Soak {
		x.doing.Store("soak")
		if err := x.makeAndRemove(); err != nil {
			return err
		}
		x.watch()
		time.Sleep(100 * time.Millisecond) // between two looks; what is waited for is the soak's end
	}
	after, err := userTime("/background")
	elapsed := time.Since(start)
	x.report.Seconds = elapsed.Seconds()
	x.report.BackgroundUser = (after - before).Seconds() / elapsed.Seconds() / float64(runtime.NumCPU())
	if x.report.BackgroundUser > mostBackgroundUser && !x.Fast {
		x.violation("background had %.2f %% of the node in user mode beside critical work that never sleeps", 100*x.report.BackgroundUser)
	}
	return err
}

// startSoakers starts the background workers, some of them for one CPU alone, and, once each has done
// a round, the critical ones: a program that starts beside them takes a minute.
func (x *chaos) startSoakers() error {
	n := runtime.NumCPU()
	for i := range soakers {
		if err := x.start(kinds[i%len(kinds)], []string{"/background/a", "/background/b/c"}[i%2]); err != nil {
			return err
		}
		if w := x.workers[len(x.workers)-1]; i%4 == 0 {
			var cpu unix.CPUSet
			cpu.Set(i / 4 % n)
			if err := unix.SchedSetaffinity(w.pid(), &cpu); err != nil {
				return fmt.Errorf("bind %v: %w", w, err)
			}
		}
	}
	if err := await("every background worker works", x.bound(mostReattach), x.allWork); err != nil {
		return err
	}
	for range 2 * n {
		if err := x.start("spin", "/critical/a"); err != nil {
			return err
		}
	}
	return nil
}

func (x *chaos) allWork() bool {
	x.watch()
	return !slices.ContainsFunc(x.workers, func(w *worker) bool { return x.work.rounds(w.slot) == 0 })
}

// userTime is the CPU time that a cgroup and all below it have had in user mode.
func userTime(cg string) (time.Duration, error) {
	text, err := host.Read(root.Cgroup(cg + "/cpu.stat"))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, "user_usec "); ok {
			us, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			return time.Duration(us) * time.Microsecond, err
		}
	}
	return 0, fmt.Errorf("%s/cpu.stat has no user_usec", cg)
}
