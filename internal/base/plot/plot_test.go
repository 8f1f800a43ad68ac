package plot

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func example(random *rand.Rand) Chart {
	c := Chart{ID: "x", Title: "p99 <& more>", Description: "a & b", XLabel: "spinners", YLabel: "ms", FromZero: random.IntN(2) == 0}
	scale := math.Pow(10, random.Float64()*6-3)
	for step := range 1 + random.IntN(9) {
		c.XTicks = append(c.XTicks, Tick{float64(step), fmt.Sprint(step)})
	}
	for i := range random.IntN(9) {
		s := Series{Label: fmt.Sprintf("arm-%d", i), Class: i}
		for _, t := range c.XTicks {
			s.Line = append(s.Line, Point{t.At, scale * random.ExpFloat64()})
			s.Runs = append(s.Runs, Point{t.At, scale * random.ExpFloat64()})
			s.Invalid = append(s.Invalid, Point{t.At, 100 * scale * random.ExpFloat64()})
		}
		c.Series = append(c.Series, s)
	}
	if random.IntN(2) == 0 {
		c.Level = &Level{scale, "the floor"}
	}
	for range random.IntN(3) {
		from := 9 * random.Float64()
		c.Spans = append(c.Spans, Span{from, from + random.Float64()})
	}
	c.RunName, c.InvalidName, c.SpanName = "one seed", "invalid window", "slow"
	return c
}

// elements parses XML and calls f for each element.
func elements(text string, f func(xml.StartElement)) error {
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if e, ok := token.(xml.StartElement); ok {
			f(e)
		}
	}
}

// Whatever the data, a chart is well-formed XML, and nothing lies outside it.
func TestChartsStayInTheirFrame(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		c := example(random)
		var b strings.Builder
		if err := c.Inline(&b); err != nil {
			t.Fatal(err)
		}
		inside := func(name, value string, limit float64) {
			if v, err := strconv.ParseFloat(value, 64); err != nil || v < -6 || v > limit+6 { // crosses are 8 wide
				t.Fatalf("seed %d: %s=%q lies outside 0 to %g: %v", seed, name, value, limit, err)
			}
		}
		err := elements(b.String(), func(e xml.StartElement) {
			for _, a := range e.Attr {
				switch a.Name.Local {
				case "cx", "x1", "x2", "x", "width":
					inside(a.Name.Local, a.Value, Width)
				case "cy", "y1", "y2":
					inside(a.Name.Local, a.Value, c.height())
				case "points":
					for pair := range strings.FieldsSeq(a.Value) {
						x, y, _ := strings.Cut(pair, ",")
						inside("x", x, Width)
						inside("y", y, c.height())
					}
				}
			}
		})
		if err != nil {
			t.Fatalf("seed %d: %v in %s", seed, err, b.String())
		}
	}
}

func TestScale(t *testing.T) {
	line := func(ys ...float64) Chart {
		c := Chart{FromZero: true}
		s := Series{}
		for i, y := range ys {
			s.Line = append(s.Line, Point{float64(i), y})
		}
		c.Series = []Series{s}
		return c
	}
	for _, test := range []struct {
		name  string
		chart Chart
		log   bool
		ticks []float64
	}{
		{"from zero", line(4, 9), false, []float64{0, 2, 4, 6, 8}},
		{"more than tenfold", line(0.4, 9), true, []float64{0.5, 1, 2, 5, 10}},
		{"a zero forbids logarithms", line(0, 9), false, []float64{0, 2, 4, 6, 8}},
		{"one value", line(7), false, []float64{0, 2, 4, 6}},
		{"all zero", line(0, 0), false, []float64{0, 0.2, 0.4, 0.6, 0.8, 1}},
		{"nothing", Chart{FromZero: true}, false, []float64{0, 0.2, 0.4, 0.6, 0.8, 1}},
	} {
		s := test.chart.yScale(0)
		equal := slices.EqualFunc(s.ticks(), test.ticks, func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })
		if s.log != test.log || !equal {
			t.Errorf("%s: log %v, ticks %v; want %v, %v", test.name, s.log, s.ticks(), test.log, test.ticks)
		}
		for _, tick := range s.ticks() {
			if math.Signbit(tick) {
				t.Errorf("%s: a negative zero", test.name)
			}
		}
	}
	if s := (scale{min: 0, max: 10, from: 100, to: 0}); s.at(5) != 50 || s.at(20) != 0 || s.at(-1) != 100 {
		t.Errorf("at: %v %v %v", s.at(5), s.at(20), s.at(-1))
	}
}

func TestLegendWraps(t *testing.T) {
	c := Chart{}
	for _, label := range []string{"eevdf", "eevdf-full", "cpuidle", "cpuidle-lazy", "scx_layered", "temper"} {
		c.Series = append(c.Series, Series{Label: label})
	}
	for _, e := range c.legend() {
		if end := e.x + legendSample + 6 + legendLetter*float64(len(e.label)); end > Width-marginRight {
			t.Errorf("%s ends at %v", e.label, end)
		}
	}
	if c.legendRows() != 2 {
		t.Errorf("%d rows", c.legendRows())
	}
}

// No words stand where data may be: all of a chart's text lies outside of the plot area, whatever the data.
func TestNoTextCoversData(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		c := example(random)
		var b strings.Builder
		if err := c.Inline(&b); err != nil {
			t.Fatal(err)
		}
		top := titleHeight + legendHeight*float64(c.legendRows())
		err := elements(b.String(), func(e xml.StartElement) {
			if e.Name.Local != "text" {
				return
			}
			var at [2]float64
			anchor := ""
			for _, a := range e.Attr {
				switch a.Name.Local {
				case "x":
					at[0], _ = strconv.ParseFloat(a.Value, 64)
				case "y":
					at[1], _ = strconv.ParseFloat(a.Value, 64)
				case "text-anchor":
					anchor = a.Value
				}
			}
			left := at[0] < marginLeft && anchor == "end" || at == [2]float64{} // the latter turned, beside the axis
			if above, below := at[1] < top, at[1] > top+plotHeight+8; !above && !below && !left {
				t.Fatalf("seed %d: a text at %v lies in the plot area", seed, at)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// The axis says that it is logarithmic, and the legend what level, dots and crosses are, where there are any.
func TestChartExplainsItself(t *testing.T) {
	plain := Chart{ID: "x", YLabel: "ms", RunName: "one seed", InvalidName: "invalid window", Series: []Series{{Label: "a", Line: []Point{{0, 4}, {1, 9}}}}}
	full := plain
	full.Level = &Level{0.4, "floor 0.4 ms"}
	full.Series = []Series{{Label: "a", Line: plain.Series[0].Line, Runs: []Point{{0, 3}}, Invalid: []Point{{1, 5}}}}
	for _, word := range []string{">ms (log scale)<", ">floor 0.4 ms<", ">one seed<", ">invalid window<"} {
		for _, test := range []struct {
			chart Chart
			want  bool
		}{{plain, false}, {full, true}} {
			var b strings.Builder
			if err := test.chart.Inline(&b); err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(b.String(), word); got != test.want {
				t.Errorf("%s: %v, want %v", word, got, test.want)
			}
		}
	}
}

func TestChartsSideBySideHaveTheirAxesAtOneLevel(t *testing.T) {
	few, many := Chart{Series: []Series{{Label: "a"}}}, Chart{}
	for i := range 20 {
		many.Series = append(many.Series, Series{Label: fmt.Sprintf("arm-%d", i)})
	}
	charts := []Chart{few, many}
	Align(charts)
	if a, b := charts[0].height(), charts[1].height(); a != b || b != many.height() {
		t.Errorf("heights %v and %v, want %v", a, b, many.height())
	}
}

// Colours must be told from the paper: WCAG asks for a contrast of 4.5 for text and 3 for graphics.
func TestColoursContrastWithThePaper(t *testing.T) {
	for scheme, text := range map[string]string{"light": LightColours, "dark": DarkColours} {
		colours := map[string]float64{}
		for entry := range strings.SplitSeq(text, ";") {
			name, value, _ := strings.Cut(entry, ":")
			colours[name] = luminance(t, value)
		}
		for name, l := range colours {
			if name == "--paper" || name == "--line" {
				continue
			}
			high, low := max(l, colours["--paper"]), min(l, colours["--paper"])
			if contrast := (high + 0.05) / (low + 0.05); contrast < 4.5 {
				t.Errorf("%s %s: contrast %.2f", scheme, name, contrast)
			}
		}
	}
}

func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	rgb, err := strconv.ParseUint(hex[1:], 16, 32)
	if err != nil {
		t.Fatal(err)
	}
	linear := func(shift int) float64 {
		c := float64(rgb>>shift&0xff) / 255
		if c <= 0.04045 {
			return c / 12.92
		}
		return math.Pow((c+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(16) + 0.7152*linear(8) + 0.0722*linear(0)
}
