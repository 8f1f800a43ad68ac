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
		c.Level = &Level{scale, "floor"}
	}
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
				case "cx", "x1", "x2":
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
		if end := e.x + legendSample + 6 + legendLetter*float64(len(e.series.Label)); end > Width-marginRight {
			t.Errorf("%s ends at %v", e.series.Label, end)
		}
	}
	if c.legendRows() != 2 {
		t.Errorf("%d rows", c.legendRows())
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
