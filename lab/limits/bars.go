package limits

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// bar is a promise about Temper's pacing, checked at each step.
type bar struct {
	name    string
	atLeast bool // the figure must not be below limit; else, not above
	limit   float64
	figure  func(own, stock Step) float64
}

var bars = []bar{
	{"use at full load, in quotas", true, 0.98, func(own, _ Step) float64 { return own.QuotaUseMean }},
	{"most of any ten periods, in quotas", false, 1.01, func(own, _ Step) float64 { return own.QuotaUseMax }},
	{"requests at full load over stock", true, 1, func(own, stock Step) float64 { return own.TPS / stock.TPS }},
	{"p95 at steady load over stock", false, 0.35, func(own, stock Step) float64 { return own.P95 / stock.P95 }},
	{"p99 at steady load over stock", false, 0.35, func(own, stock Step) float64 { return own.P99 / stock.P99 }},
}

func (b bar) kept(figure float64) bool {
	if b.atLeast {
		return figure >= b.limit
	}
	return figure <= b.limit
}

func (b bar) sign() string {
	if b.atLeast {
		return "≥"
	}
	return "≤"
}

// judge is a figure, marked if the bar is missed, and in another way if the service alone without any limit, best, would
// miss it, too.
func (b bar) judge(own, stock, best Step) (text string, kept bool) {
	figure := b.figure(own, stock)
	if b.kept(figure) {
		return fmt.Sprintf("%.3f  ", figure), true
	}
	if best.Valid && !b.kept(b.figure(best, stock)) {
		return fmt.Sprintf("%.3f **", figure), false
	}
	return fmt.Sprintf("%.3f * ", figure), false
}

// writeBars holds Temper's pacing to the bars, at each step that counts and has stock beside it.
func writeBars(w io.Writer, r Record) error {
	var steps []Step
	for _, a := range r.Arms {
		for _, s := range a.Steps {
			if stock, ok := r.step("stock", s.Background); a.Arm == "temper" && ok && s.Valid && stock.Valid {
				steps = append(steps, s)
			}
		}
	}
	if len(steps) == 0 {
		return nil
	}
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(out, "bars of pacing\t\t")
	for _, s := range steps {
		fmt.Fprintf(out, "bg %d  \t", s.Background)
	}
	fmt.Fprintln(out)
	missed := 0
	best, _ := r.step("none", 0)
	for _, b := range bars {
		fmt.Fprintf(out, "%s\t%s %.2f\t", b.name, b.sign(), b.limit)
		for _, own := range steps {
			stock, _ := r.step("stock", own.Background)
			text, kept := b.judge(own, stock, best)
			if !kept {
				missed++
			}
			fmt.Fprintf(out, "%s\t", text)
		}
		fmt.Fprintln(out)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%d of %d missed. *: missed. **: missed, as it would be by the service alone without any limit.\n",
		missed, len(bars)*len(steps))
	return err
}
