package docgen

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"temper.dev/temper/lab/survey"
)

// Kernels is what a survey found, kernel by kernel.
func Kernels(reports []survey.Report) string {
	var b strings.Builder
	b.WriteString("# Kernels\n" + notice + `On which of Debian's cloud kernels, and on a 6.12 built from Debian's source (its name ends in temper; Debian's own lacks sched_ext), the scheduler works, as ` + "`make kernels`" + ` found out in guests with two CPUs: the functional tests (` + "`make test-guest`" + `), and how many instructions the kernel's verifier looked at when the programs were loaded. It gives up at a million for one program. Figures of speed are stated for 6.18 only.

| kernel | | tests passed | instructions verified |
| --- | --- | --- | --- |
`)
	var programs []string
	for _, r := range reports {
		tests, total := "–", "–"
		if r.Refused == "" {
			tests, total = fmt.Sprintf("%d of %d", r.Passed, r.Passed+len(r.Failed)), fmt.Sprint(r.Total())
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.Release, r.Verdict(), tests, total)
		programs = append(programs, slices.Collect(maps.Keys(r.Verified))...)
	}
	slices.Sort(programs)
	b.WriteString("\n## Instructions verified, by program\n\n| program |")
	var attached []survey.Report
	for _, r := range reports {
		if r.Refused == "" {
			attached = append(attached, r)
			fmt.Fprintf(&b, " %s |", strings.TrimSuffix(r.Release, "-cloud-amd64"))
		}
	}
	b.WriteString("\n| --- |" + strings.Repeat(" --- |", len(attached)) + "\n")
	for _, p := range slices.Compact(programs) {
		fmt.Fprintf(&b, "| `%s` |", p)
		for _, r := range attached {
			n := "–" // not loaded
			if v, loaded := r.Verified[p]; loaded {
				n = fmt.Sprint(v)
			}
			fmt.Fprintf(&b, " %s |", n)
		}
		b.WriteString("\n")
	}
	return b.String()
}
