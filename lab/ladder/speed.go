package ladder

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// LabIterations take about stageTime at the lab's speed.
	LabIterations = 8250
	stageTime     = 400 * time.Microsecond // of a chain's stage; a multiple of it for other requests

	spinUnit     = 1000                   // iterations for each count of a spinner (the load folder's spin.c)
	speedTime    = time.Second            // over which a host's speed is measured
	steadyTime   = 100 * time.Millisecond // over which the lab's is
	steadyWithin = 0.05
)

// findIterations fills in how much computing stageTime is, unless the site says so.
func (l *ladder) findIterations(ctx context.Context) error {
	if l.StageIterations != 0 {
		return nil
	}
	perSecond, err := l.measureSpeed(ctx)
	l.StageIterations = uint64(perSecond * stageTime.Seconds())
	return err
}

// measureSpeed is how many iterations a second CPU 0 computes.
func (l *ladder) measureSpeed(ctx context.Context) (float64, error) {
	rates, err := l.cpuRates(ctx, []int{0}, speedTime)
	if err != nil {
		return 0, err
	}
	return rates[0], nil
}

// cpuRates is how many iterations a second each of the CPUs computes while all of them do.
func (l *ladder) cpuRates(ctx context.Context, cpus []int, over time.Duration) ([]float64, error) {
	spinners, stop, err := l.startBackground(ctx, spinner, len(cpus), l.CPUs)
	if err != nil {
		return nil, err
	}
	defer stop()
	for i, s := range spinners {
		var only unix.CPUSet
		only.Set(cpus[i])
		if err := unix.SchedSetaffinity(s.Process.Pid, &only); err != nil {
			return nil, fmt.Errorf("pin a spinner to CPU %d: %w", cpus[i], err)
		}
	}
	before, from, err := l.spinnerCounts(len(cpus))
	if err != nil {
		return nil, err
	}
	time.Sleep(over)
	after, to, err := l.spinnerCounts(len(cpus))
	if err != nil {
		return nil, err
	}
	rates := make([]float64, len(cpus))
	for i, cpu := range cpus {
		if after[i] == before[i] {
			return nil, fmt.Errorf("a spinner on CPU %d did nothing within %s", cpu, over)
		}
		rates[i] = float64(after[i]-before[i]) * spinUnit / to.Sub(from).Seconds()
	}
	return rates, nil
}

func (l *ladder) spinnerCounts(n int) ([]uint64, time.Time, error) {
	const slotSize = 64 // load.h's struct work_slot
	slots, err := os.ReadFile(filepath.Join(l.Dir, "work"))
	if err != nil {
		return nil, time.Time{}, err
	}
	now := time.Now()
	counts := make([]uint64, n)
	for i := range counts {
		counts[i] = binary.LittleEndian.Uint64(slots[i*slotSize:])
	}
	return counts, now, nil
}

// steadyTries: what the kernel does once after it has booted may fall into the time of a measurement.
const steadyTries = 3

// checkSteady measures the application CPUs, each alone and all at once, and refuses a machine on
// which they differ: a ladder there would measure where a task ran, and how many CPUs were idle.
func (l *ladder) checkSteady(ctx context.Context) (alone, together []float64, err error) {
	for range steadyTries {
		if alone, together, err = l.ratesOfAll(ctx); err != nil {
			return nil, nil, err
		}
		if err = steady(alone, together); err == nil {
			return alone, together, nil
		}
	}
	return nil, nil, err
}

// ratesOfAll is how fast each application CPU computes while the others idle, and while all compute.
func (l *ladder) ratesOfAll(ctx context.Context) (alone, together []float64, err error) {
	var all []int
	for cpu := range l.CPUs {
		all = append(all, cpu)
		rate, err := l.cpuRates(ctx, []int{cpu}, steadyTime)
		if err != nil {
			return nil, nil, err
		}
		alone = append(alone, rate[0])
	}
	together, err = l.cpuRates(ctx, all, steadyTime)
	return alone, together, err
}

// steady wants one speed of all CPUs, whatever their neighbours do.
func steady(alone, together []float64) error {
	rates := slices.Concat(alone, together)
	slowest, fastest := slices.Min(rates), slices.Max(rates)
	if fastest <= slowest*(1+steadyWithin) {
		return nil
	}
	return fmt.Errorf("the CPUs of this machine differ in speed by %.0f %%, and no ladder on it would mean anything; "+
		"in thousand iterations a second: %s; %s",
		100*(fastest/slowest-1), ratesText("alone", alone), ratesText("all at once", together))
}

func ratesText(how string, rates []float64) string {
	text := how
	for cpu, rate := range rates {
		text += fmt.Sprintf(" CPU %d %.0f", cpu, rate/1000)
		if cpu < len(rates)-1 {
			text += ","
		}
	}
	return text
}
