package bench

import (
	"fmt"
	"strings"
)

// StepLabel names a step: its spinners, and which visit it is where the ladder comes back.
func StepLabel(background, visit int) string {
	if visit == 0 {
		return fmt.Sprint(background)
	}
	return fmt.Sprintf("%d #%d", background, visit+1)
}

// Spinners is a step in words.
func Spinners(background, visit int) string {
	return spinnersOf([]string{StepLabel(background, visit)})
}

// spinnersOf are steps in words, by their labels.
func spinnersOf(labels []string) string {
	if first, _, _ := strings.Cut(labels[0], " "); len(labels) == 1 && first == "1" {
		return labels[0] + " spinner"
	}
	return list(labels) + " spinners"
}

// Label names the cell's step.
func (c *Cell) Label() string { return StepLabel(c.Background, c.Visit) }

// InvalidText says which of the cell's windows do not count, and why; "" if all count.
func (c *Cell) InvalidText() string {
	var reasons []string
	for _, w := range c.Windows {
		if w.Valid {
			continue
		}
		reason := w.InvalidReason
		if reason == "" {
			reason = "no reason recorded"
		}
		if len(c.Windows) > 1 {
			reason = fmt.Sprintf("seed %d: %s", w.Seed, reason)
		}
		reasons = append(reasons, reason)
	}
	if len(reasons) == 0 {
		return ""
	}
	if len(c.Windows) == 1 {
		return "invalid window: " + reasons[0]
	}
	return fmt.Sprintf("%d of %s invalid: %s", len(reasons), plural(len(c.Windows), "window", "windows"), strings.Join(reasons, "; "))
}

// Plan names the plan in a few words: "memcached at 50 % load, bursty, 2 CPUs".
func (p *Pooled) Plan() string {
	c := p.Conditions
	name := c.Scenario
	if c.Load > 0 {
		name += fmt.Sprintf(" at %.0f %% load", c.Load*100)
	}
	if c.Bursty {
		name += ", bursty"
	}
	return fmt.Sprintf("%s, %s", name, plural(c.CPUs, "CPU", "CPUs"))
}

// TimeUnit says what a millisecond is on this machine.
func (p *Pooled) TimeUnit() string {
	if p.Conditions.Machine.Kind == "lab" {
		return "ms of guest time"
	}
	return "ms"
}

// SeedText lists the seeds.
func (p *Pooled) SeedText() string {
	var seeds []string
	for _, r := range p.Seeds {
		seeds = append(seeds, fmt.Sprint(r.Seed))
	}
	if len(seeds) == 1 {
		return "seed " + seeds[0]
	}
	return "seeds " + strings.Join(seeds, ", ")
}

// headline is the table's first line.
func (p *Pooled) headline() string {
	c := p.Conditions
	return fmt.Sprintf("%s: kernel %s, %s machine, %s, windows of %s s, latencies in %s",
		p.Plan(), c.Kernel, c.Machine.Kind, p.SeedText(), trimFloat(c.Seconds), p.TimeUnit())
}
