package bench

import (
	"fmt"
	"math"
)

// How a cell's latencies were pooled.
const (
	fromWindow     = "window"     // one valid window: its own figures
	fromHistograms = "histograms" // the windows' histograms added up
	fromMedians    = "medians"    // a histogram is missing: the median of the windows' figures
)

// pool fills the cell's figures, and those of each draw, from its valid windows, and lets go of the encoded histograms.
func (c *Cell) pool(draws [][]int) error {
	if err := c.decode(); err != nil {
		return err
	}
	once := make([]int, len(c.Windows))
	for i := range once {
		once[i] = 1
	}
	switch {
	case c.Valid() == 0:
		c.bins = nil
	case c.Valid() == 1:
		c.Source = fromWindow
	case c.bins != nil:
		c.Source = fromHistograms
	default:
		c.Source = fromMedians
	}
	if f := c.weighted(once); !math.IsNaN(f.P50) {
		c.Figures = &f
	}
	for _, w := range draws {
		c.boot = append(c.boot, c.weighted(w))
	}
	return nil
}

// decode reads the valid windows' histograms; one that is missing leaves the cell without any.
func (c *Cell) decode() error {
	complete := true
	for i := range c.Windows {
		w := &c.Windows[i]
		if w.Valid && w.Histogram != "" {
			bins, err := decodeBins(w.Histogram, i)
			if err != nil {
				return fmt.Errorf("seed %d: %w", w.Seed, err)
			}
			c.bins = append(c.bins, bins...)
		} else if w.Valid {
			complete = false
		}
		w.Histogram = ""
	}
	if !complete {
		c.bins = nil
	}
	sortBins(c.bins)
	return nil
}

// Valid is the number of windows that count.
func (c *Cell) Valid() int {
	n := 0
	for _, w := range c.Windows {
		if w.Valid {
			n++
		}
	}
	return n
}

// weighted are the figures where seed i counts weights[i] times: latencies as Source says, the rest as means.
func (c *Cell) weighted(weights []int) Figures {
	var drawn []Figures
	var sum Figures
	for i, w := range c.Windows {
		for range weights[i] {
			if w.Valid {
				f := FiguresOf(w.Step)
				drawn = append(drawn, f)
				sum.Mean += f.Mean
				sum.Work += f.Work
				sum.BackgroundCores += f.BackgroundCores
				sum.IdleCores += f.IdleCores
				sum.Requests += f.Requests
			}
		}
	}
	if len(drawn) == 0 {
		return noFigures()
	}
	n := float64(len(drawn))
	f := Figures{
		Mean: sum.Mean / n, Work: sum.Work / n, BackgroundCores: sum.BackgroundCores / n, IdleCores: sum.IdleCores / n,
		Requests: sum.Requests / n,
	}
	if c.Source == fromHistograms {
		q := quantiles(c.bins, weights, 0.50, 0.90, 0.99, 0.999)
		f.P50, f.P90, f.P99, f.P999 = q[0], q[1], q[2], q[3]
		return f
	}
	middle := func(name Figure) float64 {
		values := make([]float64, len(drawn))
		for i, d := range drawn {
			values[i] = d.At(name)
		}
		return median(values)
	}
	f.P50, f.P90, f.P99, f.P999 = middle(P50), middle(P90), middle(P99), middle(P999)
	return f
}

// Quantile is a point of a latency curve.
type Quantile struct {
	Fraction float64 // of the requests, 0 to 1
	MS       float64
}

// Curve is the pooled latency curve, dense towards the tail, up to the last quantile that one request decides.
// It is empty where a histogram is missing.
func (c *Cell) Curve() []Quantile {
	var requests int64
	for _, b := range c.bins {
		requests += b.count
	}
	if requests == 0 {
		return nil
	}
	var fractions []float64
	for nines := 0.0; nines <= math.Log10(float64(requests)); nines += 0.05 {
		fractions = append(fractions, 1-math.Pow(10, -nines))
	}
	once := make([]int, len(c.Windows))
	for i := range once {
		once[i] = 1
	}
	curve := make([]Quantile, len(fractions))
	for i, ms := range quantiles(c.bins, once, fractions...) {
		curve[i] = Quantile{fractions[i], ms}
	}
	return curve
}
