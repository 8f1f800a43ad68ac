package plot

import (
	"fmt"
	"math"
	"strings"
)

// scale maps data units to SVG units; values outside [min, max] land on the edge.
type scale struct {
	min, max float64 // data; of their logarithms if log
	from, to float64 // SVG
	log      bool
}

func (s scale) at(v float64) float64 {
	if s.log {
		v = math.Log10(v)
	}
	share := (math.Min(math.Max(v, s.min), s.max) - s.min) / (s.max - s.min)
	return s.from + share*(s.to-s.from)
}

func (c Chart) xScale() scale {
	const pad = 26 // room for dodged series at the ends
	s := scale{min: math.Inf(1), max: math.Inf(-1), from: marginLeft + pad, to: Width - marginRight - pad}
	for _, t := range c.XTicks {
		s.min, s.max = math.Min(s.min, t.At), math.Max(s.max, t.At)
	}
	for _, series := range c.Series {
		for _, p := range series.Line {
			s.min, s.max = math.Min(s.min, p.X), math.Max(s.max, p.X)
		}
	}
	if !(s.max > s.min) { // one step, or none
		s.min, s.max = s.min-1, s.min+1
	}
	return s
}

// yScale covers lines, runs and level; it is logarithmic where they differ tenfold and are all above 0.
func (c Chart) yScale(top float64) scale {
	const wide = 10
	low, high := c.yRange()
	s := scale{from: top + plotHeight, to: top}
	if !c.NeverLog && low > 0 && high/low > wide {
		s.log, s.min, s.max = true, math.Log10(low/1.15), math.Log10(high*1.15)
		return s
	}
	if c.FromZero {
		low = 0
	}
	if !(high > low) {
		low, high = 0, math.Max(1, 2*high)
	}
	s.min, s.max = low, high+0.08*(high-low)
	return s
}

func (c Chart) yRange() (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	see := func(v float64) { low, high = math.Min(low, v), math.Max(high, v) }
	for _, s := range c.Series {
		for _, p := range s.Line {
			see(p.Y)
		}
		for _, p := range s.Runs {
			see(p.Y)
		}
	}
	if c.Level != nil {
		see(c.Level.Y)
	}
	if math.IsInf(low, 1) {
		return 0, 1
	}
	return low, high
}

// ticks are round values on the scale: 1, 2 and 5 times powers of ten if it is logarithmic, else about six.
func (s scale) ticks() []float64 {
	var out []float64
	if s.log {
		for e := math.Floor(s.min); e <= s.max; e++ {
			for _, m := range []float64{1, 2, 5} {
				if v := math.Log10(m) + e; v >= s.min && v <= s.max {
					out = append(out, m*math.Pow(10, e))
				}
			}
		}
		return out
	}
	step := roundStep((s.max - s.min) / 6)
	for i := math.Ceil(s.min/step - 1e-9); i*step <= s.max; i++ {
		out = append(out, i*step+0) // + 0: no negative zero
	}
	return out
}

// roundStep is the smallest of 1, 2, 5 times a power of ten that is not below v.
func roundStep(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= v*(1-1e-9) {
			return m * power
		}
	}
	return 10 * power
}

func (c Chart) drawAxes(b *strings.Builder, x, y scale, top float64) {
	bottom := top + plotHeight
	for _, v := range y.ticks() {
		at := y.at(v)
		fmt.Fprintf(b, `<line class="grid" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`, marginLeft, Width-marginRight, at, at)
		text(b, marginLeft-7, at+4, "tick", "end", fmt.Sprintf("%.4g", v))
	}
	fmt.Fprintf(b, `<line class="axis" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`, marginLeft, Width-marginRight, bottom, bottom)
	for _, t := range c.XTicks {
		at := x.at(t.At)
		fmt.Fprintf(b, `<line class="axis" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`, at, at, bottom, bottom+4)
		text(b, at, bottom+18, "tick", "middle", t.Label)
	}
	text(b, (marginLeft+Width-marginRight)/2, bottom+40, "label", "middle", c.XLabel)
	fmt.Fprintf(b, `<g transform="translate(11 %.1f) rotate(-90)">`, top+plotHeight/2)
	label := c.YLabel
	if y.log {
		label += " (log scale)"
	}
	text(b, 0, 0, "label", "middle", label)
	b.WriteString("</g>\n")
}
