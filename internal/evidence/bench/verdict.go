package bench

import (
	"fmt"
	"math"
	"strings"
)

// level is how close two arms' worst figures must be for neither to be called better.
const level = 1.02

// Standing is what an arm is worth in one sentence.
type Standing struct {
	Label string
	Tail  float64 // worst p99 over the floor, over the loaded steps; NaN without one
	Work  float64 // least background work over the most, over the loaded steps; NaN without one
}

// Standings are the arms that have a valid window at every step.
func (p *Pooled) Standings() []Standing {
	var out []Standing
	for i := range p.Arms {
		a := &p.Arms[i]
		s := Standing{a.Label, math.NaN(), math.NaN()}
		complete := true
		for j := range a.Cells {
			c := &a.Cells[j]
			tail := p.OverFloor(c, P99)
			if tail == nil {
				complete = false
				continue
			}
			if c.Background == 0 {
				continue
			}
			s.Tail = larger(s.Tail, tail.Value)
			if share := p.WorkShare(c); share != nil {
				s.Work = smaller(s.Work, share.Value)
			}
		}
		if complete {
			out = append(out, s)
		}
	}
	return out
}

// Verdict says in sentences what the pools show: which arm is best, where stock is good enough, which bars fail.
func Verdict(pools []*Pooled, results []BarResult) string {
	text := ""
	for _, part := range VerdictParts(pools, results) {
		text += " " + Sentence(part)
	}
	return strings.TrimSpace(text)
}

// Sentence is a part of a verdict as a sentence: a capital, a full stop.
func Sentence(part string) string {
	return strings.ToUpper(part[:1]) + part[1:] + "."
}

// VerdictParts are the verdict's parts, without their last stops: one for each pool, then one for the bars.
func VerdictParts(pools []*Pooled, results []BarResult) []string {
	if len(pools) == 0 {
		return []string{"no ladder was judged"}
	}
	var parts []string
	for _, p := range pools {
		parts = append(parts, p.verdict())
	}
	return append(parts, barsVerdict(pools, results))
}

func (p *Pooled) verdict() string {
	all := p.Standings()
	if len(all) == 0 {
		return p.Plan() + ": no arm has a valid window at every step, so none can be called best"
	}
	parts := []string{p.Plan() + ": " + tailVerdict(all)}
	if work := workVerdict(all); work != "" {
		parts = append(parts, work)
	}
	if good, judged := p.StockGoodEnough(); good != "" {
		parts = append(parts, "Stock is good enough: "+good)
	} else if judged {
		parts = append(parts, "Stock is not good enough at any loaded step")
	}
	return strings.Join(append(parts, p.Cautions()...), ". ")
}

func tailVerdict(all []Standing) string {
	best := math.NaN()
	for _, s := range all {
		best = smaller(best, s.Tail)
	}
	if math.IsNaN(best) {
		return "no step has background work, so no arm can be called best"
	}
	var names, others []string
	for _, s := range all {
		if s.Tail <= best*level {
			names = append(names, s.Label)
		} else {
			others = append(others, fmt.Sprintf("%s %.2f", s.Label, s.Tail))
		}
	}
	text := fmt.Sprintf("%s %s p99 lowest under load, at most %.2f times the floor", list(names), verb(names, "keeps", "keep"), best)
	if len(others) > 0 {
		text += " (" + list(others) + ")"
	}
	return text
}

func workVerdict(all []Standing) string {
	most := math.NaN()
	for _, s := range all {
		most = larger(most, s.Work)
	}
	if math.IsNaN(most) {
		return ""
	}
	var names []string
	for _, s := range all {
		if s.Work*level >= most {
			names = append(names, s.Label)
		}
	}
	return fmt.Sprintf("%s %s most background work, at every loaded step at least %.0f %% of the best arm's", list(names), verb(names, "gets", "get"), 100*most)
}

func verb(names []string, one, many string) string {
	if len(names) == 1 {
		return one
	}
	return many
}

// StockGoodEnough names the loaded steps at which one stock arm keeps the bars on p99 over the floor and on work; judged is
// false where no bar says what would be good enough.
func (p *Pooled) StockGoodEnough() (steps string, judged bool) {
	if _, ok := p.tailBar(); !ok {
		return "", false
	}
	var parts []string
	for i := range p.Arms {
		a := &p.Arms[i]
		var good []string
		loaded := 0
		for j := range a.Cells {
			c := &a.Cells[j]
			if c.Background > 0 {
				loaded++
			}
			if c.Background > 0 && p.goodEnough(Row{a, c}) {
				good = append(good, c.Label())
			}
		}
		switch {
		case !IsStock(a.Label) || len(good) == 0:
		case len(good) == loaded:
			parts = append(parts, a.Label+" at every loaded step")
		default:
			parts = append(parts, fmt.Sprintf("%s at %s", a.Label, spinnersOf(good)))
		}
	}
	return strings.Join(parts, ", "), true
}

// GoodEnoughText says where stock is good enough, as a cell of a table.
func (p *Pooled) GoodEnoughText() string {
	switch steps, judged := p.StockGoodEnough(); {
	case !judged:
		return "no bar says"
	case steps == "":
		return "at no loaded step"
	default:
		return steps
	}
}

// StandingText is an arm's worst p99 over the floor and its least background work over the most, as a cell of a table.
func (p *Pooled) StandingText(arm string) string {
	for _, s := range p.Standings() {
		if s.Label == arm {
			return twoDecimals(s.Tail) + " / " + twoDecimals(s.Work)
		}
	}
	return missing
}

// goodEnough holds a row of any arm against the bars over the floor on p99 and on background work.
func (p *Pooled) goodEnough(row Row) bool {
	for _, b := range Bars {
		if !b.appliesTo(p.Conditions) || b.Over == OverStock || b.Figure == P50 {
			continue
		}
		reference, _ := p.reference(b, row)
		r := p.ratio(row.Cell.of(b.Figure), reference)
		if r == nil || !b.holds(r.Value, b.limitFor(p)) {
			return false
		}
	}
	return true
}

// NoBars says why nothing was checked.
func NoBars(pools ...*Pooled) string {
	for _, p := range pools {
		for _, a := range p.Arms {
			if IsOurs(a.Label) {
				return "no bar is about this scenario at this load"
			}
		}
	}
	return "Temper did not run, so no bar was checked"
}

func barsVerdict(pools []*Pooled, results []BarResult) string {
	text, names := BarsVerdict(pools, results)
	if len(names) > 0 {
		text += ": " + strings.Join(names, ", ")
	}
	return text
}

// BarsVerdict says how many checks of the bars Temper fails, and which bars these are, one by one.
func BarsVerdict(pools []*Pooled, results []BarResult) (text string, names []string) {
	if len(results) == 0 {
		return NoBars(pools...), nil
	}
	failed := Failed(results)
	if len(failed) == 0 {
		return fmt.Sprintf("Temper passes all %d checks of the bars", len(results)), nil
	}
	for _, s := range SummariseBars(failed) {
		often := ""
		if s.Failed > 1 {
			often = fmt.Sprintf("%d times, worst ", s.Failed)
		}
		names = append(names, fmt.Sprintf("%s (%s%s, %s: %s)", s.Worst.Name, often, s.Worst.Arm, s.Worst.Plan, s.Worst.brief()))
	}
	return fmt.Sprintf("Temper fails %d of %d checks of the bars", len(failed), len(results)), names
}

func (r BarResult) brief() string {
	at := "at " + Spinners(r.Background, r.Visit)
	if r.Measured == nil {
		return "not measured " + at
	}
	return fmt.Sprintf("%s %s, allowed %s", threeDecimals(r.Measured.Value), at, threeDecimals(r.Applied))
}
