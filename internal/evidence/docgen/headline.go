package docgen

import (
	"fmt"
	"path/filepath"
	"strings"

	"temper.dev/temper/internal/evidence/bench"
	"temper.dev/temper/lab/cost"
)

// Headlined is the plan that the README shows: memcached at half load on four CPUs.
func Headlined(s *bench.Summary) *bench.Pooled {
	return firstPool(s, func(c bench.Conditions) bool {
		return c.Scenario == "memcached" && c.Load == 0.5 && c.CPUs == 4 && !c.Bursty
	})
}

// Headline is the README's block: the picture, and three figures that need no explanation, at the plan's highest step; what
// scheduling costs is that of the record with as many CPUs, in the folder of costs.
func Headline(s *bench.Summary, costs, picture, page string) (string, error) {
	if s == nil {
		return noRecords, nil
	}
	p := Headlined(s)
	instructions, err := wakeUps(costs, p.Conditions.CPUs)
	if err != nil {
		return "", err
	}
	var alone, tail, work, wake []string
	busy := 0
	for _, name := range compared {
		arm := p.Arm(name)
		if arm == nil {
			return "", fmt.Errorf("%s has no arm %s", p.Plan(), name)
		}
		quiet, loaded := &arm.Cells[0], &arm.Cells[len(arm.Cells)-1]
		share := workShare(p, loaded)
		if quiet.Figures == nil || loaded.Figures == nil || share == nil {
			return "", fmt.Errorf("%s: a step of %s has no valid window", p.Plan(), name)
		}
		busy = loaded.Background
		alone = append(alone, bench.FormatMS(quiet.Figures.P99)+" ms")
		tail = append(tail, bench.FormatMS(loaded.Figures.P99)+" ms")
		work = append(work, fmt.Sprintf("%.0f %%", share.Value*100))
		wake = append(wake, instructions[name])
	}
	var b strings.Builder
	fmt.Fprintf(&b, "![%s: p99 and background work](%s)\n\n", p.Plan(), picture)
	fmt.Fprintf(&b, "| %s, beside %d busy background threads | Stock (`eevdf`) | Best stock setting (`cpuidle`) | Temper |\n| --- | --- | --- | --- |\n",
		p.Plan(), busy)
	for _, row := range []struct {
		name    string
		figures []string
	}{
		{"99 % of requests answered within", tail},
		{"Background work, of the most", work},
		{"CPU instructions of a wake-up with a switch", wake},
	} {
		fmt.Fprintf(&b, "| %s | %s |\n", row.name, strings.Join(row.figures, " | "))
	}
	fmt.Fprintf(&b, "\nWithout background work, p99 is %s. Times are of the lab, %s. Temper misses %d of %d [bars](%s).\n",
		strings.Join(alone, ", "), p.SeedText(), len(bench.Failed(s.Bars)), len(s.Bars), page)
	return b.String(), nil
}

// wakeUps are the instructions of a wake-up with a switch under each arm; an arm that was not counted has a word for it.
func wakeUps(dir string, cpus int) (map[string]string, error) {
	found := map[string]string{}
	err := each(dir, func(_ string, r cost.Record) error {
		for _, arm := range r.Arms {
			if r.CPUs == cpus {
				found[arm.Arm] = thousands(int(arm.Instructions["pipe"] + 0.5))
			}
		}
		return nil
	})
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("%s has no record of %d CPUs", filepath.Base(dir), cpus)
	}
	for _, name := range compared {
		if found[name] == "" {
			found[name] = "not counted"
		}
	}
	return found, err
}

// thousands writes a number below a million as people read it: 6,414.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}
