package fenceprofile

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"temper.dev/temper/pathfence/go/core"
)

// Profile is what a class turned out to make use of.
type Profile struct {
	Class string        `json:"class"`
	Steps []Step        `json:"steps"`
	Knee  int64         `json:"knee"`  // smallest concurrency on the plateau of goodput; the last where none shows
	Limit int64         `json:"limit"` // to start from; 0: none, the class may have all workers
	Hold  time.Duration `json:"hold_ns"`
	Shape string        `json:"shape"`
}

const fewestSteps = 4 // below, any curve fits

// Of says what steps of rising concurrency show: the knee as a fence would learn it, a limit a quarter above, and how long
// a request holds its worker where nobody is in its way.
func Of(class string, steps []Step) (Profile, error) {
	p := Profile{Class: class, Steps: steps}
	if len(steps) < fewestSteps {
		return p, fmt.Errorf("class %s: %d concurrencies are too few to find a knee; it takes %d", class, len(steps), fewestSteps)
	}
	var points []core.Measured
	for i, s := range steps {
		if i > 0 && s.Concurrency <= steps[i-1].Concurrency {
			return p, fmt.Errorf("class %s: concurrencies must rise; %d follows %d", class, s.Concurrency, steps[i-1].Concurrency)
		}
		points = append(points, core.Measured{Concurrency: s.Concurrency, Good: int64(math.Round(s.Good))})
	}
	if !slices.ContainsFunc(points, func(m core.Measured) bool { return m.Good > 0 }) {
		return p, fmt.Errorf("class %s: nothing was answered well and in time, at no concurrency", class)
	}
	var shape core.Shape
	p.Knee, p.Limit, shape = core.Profile(points)
	p.Shape = map[core.Shape]string{
		core.Plateau: "a plateau", core.Rising: "rising to the end: no limit shows", core.Falling: "falling: more at a time makes less",
	}[shape]
	p.Hold = steps[0].Hold
	return p, nil
}

// Put writes profiles into the classes of a configuration.
func Put(cfg *core.Config, profiles []Profile) {
	for _, p := range profiles {
		for i := range cfg.Classes {
			if cfg.Classes[i].Name == p.Class {
				cfg.Classes[i].Limit, cfg.Classes[i].Hold = p.Limit, p.Hold.Nanoseconds()
			}
		}
	}
}

// ReadSteps reads what another load generator has measured: lines of concurrency, good answers a second, and the median
// time of a request in ms.
func ReadSteps(name string, file io.Reader) (steps []Step, err error) {
	lines := csv.NewReader(file)
	lines.FieldsPerRecord, lines.Comment, lines.TrimLeadingSpace = 3, '#', true
	records, err := lines.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for i, r := range records {
		c, err1 := strconv.ParseInt(r[0], 10, 64)
		good, err2 := strconv.ParseFloat(r[1], 64)
		hold, err3 := strconv.ParseFloat(r[2], 64)
		if err1 != nil || err2 != nil || err3 != nil || c < 1 || !(good >= 0 && hold >= 0) || math.IsInf(good+hold, 0) {
			return nil, fmt.Errorf("%s, record %d: %q is not a concurrency, answers a second, and milliseconds", name, i+1, strings.Join(r, ","))
		}
		steps = append(steps, Step{Concurrency: c, Good: good, Done: good, Hold: time.Duration(hold * float64(time.Millisecond))})
	}
	return steps, nil
}

const widest = 40 // of a bar

// Write draws goodput over concurrency, and marks the knee.
func (p Profile) Write(w io.Writer) {
	most := slices.MaxFunc(p.Steps, func(a, b Step) int { return int(math.Copysign(1, a.Good-b.Good)) }).Good
	fmt.Fprintf(w, "%s · %s · knee %d · ", p.Class, p.Shape, p.Knee)
	if p.Limit == 0 {
		fmt.Fprintln(w, "no limit")
	} else {
		fmt.Fprintf(w, "limit %d\n", p.Limit)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "AT A TIME\tGOOD/S\tDONE/S\tHOLD\t")
	for _, s := range p.Steps {
		mark := ""
		if s.Concurrency == p.Knee {
			mark = " knee"
		}
		fmt.Fprintf(table, "%d\t%.1f\t%.1f\t%v\t%s%s\n", s.Concurrency, s.Good, s.Done, s.Hold.Round(10*time.Microsecond), strings.Repeat("█", int(s.Good/most*widest)), mark)
	}
	_ = table.Flush()
}
