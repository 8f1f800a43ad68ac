package bench

import (
	"fmt"
	"math"
)

const (
	// wholeLoad is the Load of a ladder that is to saturate its service.
	wholeLoad = 1
	// allCPUs is the part of the application CPUs of which a service that is not saturated uses less.
	allCPUs = 0.99
	// fewRequests have fewer than ten among them beyond the 99th percentile.
	fewRequests = 1000
)

// Cautions say what keeps a pool's figures from meaning what they seem to.
func (p *Pooled) Cautions() (all []string) {
	if text := p.saturated(); text != "" {
		all = append(all, text)
	}
	if n := p.fewestRequests(); n < fewRequests {
		all = append(all, fmt.Sprintf("Only %d requests were answered in one of the steps, and p99 rests on %d of them: measure longer windows, or more seeds", n, n/100))
	}
	return all
}

// saturated names the first window without background work in which the service could not do what was asked.
func (p *Pooled) saturated() string {
	if p.Conditions.Load == wholeLoad {
		return ""
	}
	for i := range p.Arms {
		for _, c := range p.Arms[i].Cells {
			for j, w := range c.Windows {
				if !w.Valid || c.Background > 0 {
					continue
				}
				offered := p.Seeds[j].RateRPS * p.Conditions.Seconds
				// Requests come at random times: of n that are expected the square root of n may be missing.
				lacks := float64(w.Requests) < 0.98*offered-4*math.Sqrt(offered)
				if !lacks && w.ServiceCores < allCPUs*float64(p.Conditions.CPUs) {
					continue
				}
				return fmt.Sprintf("Without background work the service answers %.0f of %.0f requests a second, and uses %.2f of %d CPUs (%s): it is saturated, and its latencies are of its own queue; offer less",
					float64(w.Requests)/p.Conditions.Seconds, p.Seeds[j].RateRPS, w.ServiceCores, p.Conditions.CPUs, p.Arms[i].Label)
			}
		}
	}
	return ""
}

// fewestRequests is how many were answered over all seeds in the step of an arm that has the fewest.
func (p *Pooled) fewestRequests() int {
	fewest := math.MaxInt
	for i := range p.Arms {
		for _, c := range p.Arms[i].Cells {
			n := 0
			for _, w := range c.Windows {
				if w.Valid {
					n += w.Requests
				}
			}
			if c.Valid() > 0 {
				fewest = min(fewest, n)
			}
		}
	}
	return fewest
}
