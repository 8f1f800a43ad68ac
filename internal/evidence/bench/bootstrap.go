package bench

import (
	"math"
	"math/rand/v2"
)

const (
	bootDraws = 1000 // enough for a 95 % interval to two digits
	bootSeed  = 1    // fixed: equal records give an equal report
)

// drawSeeds draws n seeds with replacement, bootDraws times, as counts. A single seed says nothing about spread.
func drawSeeds(n int) [][]int {
	if n < 2 {
		return nil
	}
	random := rand.New(rand.NewPCG(bootSeed, 0))
	draws := make([][]int, bootDraws)
	for i := range draws {
		draws[i] = make([]int, n)
		for range n {
			draws[i][random.IntN(n)]++
		}
	}
	return draws
}

// Ratio is a measured ratio with its 95 % interval by bootstrap over seeds. Low and High are 0 with one seed.
type Ratio struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low,omitempty"`
	High  float64 `json:"high,omitempty"`
}

// quantity is a number of the pool: draw -1 is the pooled figure itself, others the bootstrap's. NaN where missing.
type quantity func(draw int) float64

// of is a cell's figure as a quantity.
func (c *Cell) of(name Figure) quantity {
	return func(draw int) float64 {
		switch {
		case c == nil || c.Figures == nil:
			return math.NaN()
		case draw < 0:
			return c.Figures.At(name)
		}
		return c.boot[draw].At(name)
	}
}

// ratio is a over b with its interval, nil where either is missing. Both come from the same draw: what a seed does to
// the arrivals it does to both.
func (p *Pooled) ratio(a, b quantity) *Ratio {
	value := over(a(-1), b(-1))
	if math.IsNaN(value) {
		return nil
	}
	r := &Ratio{Value: value}
	var drawn []float64
	for i := range p.draws {
		if v := over(a(i), b(i)); !math.IsNaN(v) { // a draw of invalid windows only says nothing
			drawn = append(drawn, v)
		}
	}
	if len(drawn) > 0 {
		r.Low, r.High = percentile(drawn, 0.025), percentile(drawn, 0.975)
	}
	return r
}
