package chaos

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// Write shows each seed, what they come to, and each violation.
func Write(w io.Writer, r Record) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "seed\toperations\tworkers\tlongest stall ms\tlongest overrun us\tviolations\t")
	for _, s := range r.Seeds {
		overrun := "–" // nobody observed
		if len(s.Observed) > 0 {
			overrun = fmt.Sprintf("%.0f", s.LongestOverrun())
		}
		fmt.Fprintf(table, "%d\t%d\t%d\t%.0f\t%s\t%d\t\n", s.Seed, s.Total(), s.Workers, s.LongestStall(), overrun, len(s.Violations))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return WriteSummary(w, r)
}

// WriteSummary shows what all seeds come to, and each violation.
func WriteSummary(w io.Writer, r Record) error {
	machine := "deterministic machine"
	if r.Fast {
		machine = "machine in the host's time"
	}
	sum := r.sum()
	fmt.Fprintf(w, "%s with %d CPUs, kernel %s, BPF object %.12s\n", machine, r.CPUs, r.Kernel, r.Hashes.BPF)
	fmt.Fprintf(w, "%d seeds, %d workers, %.0f s of guest time\n", len(r.Seeds), sum.Workers, sum.Seconds)
	if len(sum.Operations) > 0 {
		fmt.Fprintf(w, "%d operations: %s\n", sum.Total(), listed(sum.Operations, "%s %d"))
	}
	fmt.Fprintf(w, "longest stall of a worker that wanted to go on, in ms: %s\n", listed(sum.StalledMS, "%s %.0f"))
	if len(sum.Observed) > 0 {
		fmt.Fprintf(w, "longest time that background ran on while others waited: %.0f us\n", sum.LongestOverrun())
	}
	if sum.LostGuests > 0 {
		fmt.Fprintf(w, "guests that the emulator lost, by a fault of its own, and that were started again: %d\n", sum.LostGuests)
	}
	for _, s := range r.Seeds {
		if s.BackgroundUser > 0 {
			fmt.Fprintf(w, "seed %d: beside %.0f s of critical work on all CPUs, background had %.3f %% of the node in user mode\n", s.Seed, s.Seconds, 100*s.BackgroundUser)
		}
		for _, v := range s.Violations {
			fmt.Fprintf(w, "seed %d: %s\n", s.Seed, v)
		}
	}
	_, err := fmt.Fprintf(w, "%d of %d seeds with violations\n", len(r.Broken()), len(r.Seeds))
	return err
}

// sum is what all seeds have shown together; stalls by the cgroup at the top.
func (r Record) sum() Report {
	sum := Report{Operations: map[string]int{}, StalledMS: map[string]float64{}}
	for _, s := range r.Seeds {
		for name, n := range s.Operations {
			sum.Operations[name] += n
		}
		for cg, ms := range s.StalledMS {
			top := strings.Split(cg, "/")[1]
			sum.StalledMS[top] = max(sum.StalledMS[top], ms)
		}
		sum.Observed = append(sum.Observed, s.Observed...)
		sum.Workers += s.Workers
		sum.Seconds += s.Seconds
		sum.LostGuests += s.LostGuests
	}
	return sum
}

// listed joins a map's entries, in the order of their names.
func listed[V any](entries map[string]V, format string) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		list = append(list, fmt.Sprintf(format, name, entries[name]))
	}
	return strings.Join(list, ", ")
}
