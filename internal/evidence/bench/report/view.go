package report

import (
	"fmt"
	"html/template"
	"slices"
	"strings"

	"temper.dev/temper/internal/base/plot"
	"temper.dev/temper/internal/evidence/bench"
	"temper.dev/temper/lab/plan"
)

// view is what the template shows: words and pictures only.
type view struct {
	Title   string
	Style   template.CSS
	Arms    []armView
	Common  []string // arms that every plan has
	Verdict string   // of the bars
	Failed  []string // bars
	Web     bool     // a plan whose spinners resize images
	Plans   []planView
	AA      []aaView
	Method  string
	HasLab  bool
}

// armView is an arm that is present, and what it is.
type armView struct{ Name, Summary string }

type planView struct {
	ID, Name   string
	Standings  []string // of the arms that every plan has
	GoodEnough string
	Verdict    string
	Charts     []template.HTML
	More       []string // columns of this plan beyond those of all
	Columns    int      // of figures, all in all
	Rows       []rowView
	Bars       []barView
	NoBars     string // why there are none
	Conditions [][2]string
	Runs       []runView
	Invalid    []string
	Unit       string
	Overall    string // the stock arm that is best over all steps
}

type rowView struct {
	First bool // of its arm
	Cells []string
	Note  string
}

type barView struct {
	Pass                                              bool
	Text, Arm, Limit, Measured, Where, Stock, Overall string
	Spread, Verdict, Note                             string
}

type runView struct {
	Seed                            int64
	Rate, Saturation, Order, Replay string
}

func newView(s *bench.Summary, curveStep int) (view, error) {
	verdict, failed := bench.BarsVerdict(s.Pools, s.Bars)
	v := view{
		Title: "Temper: what the records show", Style: Style(), Verdict: bench.Sentence(verdict),
		Arms: armsOf(s.Pools), Common: commonArms(s.Pools), Failed: failed,
	}
	verdicts := bench.VerdictParts(s.Pools, s.Bars)
	for i, p := range s.Pools {
		pv, err := newPlanView(p, fmt.Sprintf("plan%d", i+1), curveStep, s.Bars)
		if err != nil {
			return view{}, err
		}
		pv.Verdict, pv.GoodEnough = bench.Sentence(verdicts[i]), p.GoodEnoughText()
		for _, arm := range v.Common {
			pv.Standings = append(pv.Standings, p.StandingText(arm))
		}
		v.Web = v.Web || len(pv.More) > 0
		v.Plans = append(v.Plans, pv)
		v.HasLab = v.HasLab || p.Conditions.Machine.Kind == "lab"
	}
	if s.AA != nil {
		v.Method = s.AA.Method
		for i := range s.AA.Groups {
			v.AA = append(v.AA, newAAView(&s.AA.Groups[i]))
		}
	}
	return v, nil
}

func newPlanView(p *bench.Pooled, id string, curveStep int, bars []bench.BarResult) (planView, error) {
	v := planView{ID: id, Name: p.Plan(), Unit: p.TimeUnit(), Overall: p.BestOverall(), Conditions: conditions(p)}
	charts := []plot.Chart{
		latencyChart(p, id+"-p99", bench.P99), workChart(p, id+"-work"),
		latencyChart(p, id+"-p50", bench.P50), curveChart(p, id+"-curve", pickStep(p, curveStep)),
	}
	plot.Align(charts)
	for _, c := range charts {
		var b strings.Builder
		if err := c.Inline(&b); err != nil {
			return planView{}, err
		}
		v.Charts = append(v.Charts, template.HTML(b.String())) // every text in it was escaped by plot
	}
	for _, c := range p.MoreColumns() {
		v.More = append(v.More, strings.Join(c[:], " "))
	}
	v.Columns = len(p.RowText(p.Rows()[0])) - 1
	arm := ""
	for _, r := range p.Rows() {
		row := rowView{First: r.Arm.Label != arm, Cells: p.RowText(r), Note: r.Cell.InvalidText()}
		arm = r.Arm.Label
		v.Rows = append(v.Rows, row)
		if row.Note != "" {
			v.Invalid = append(v.Invalid, fmt.Sprintf("%s, step %s: %s", r.Arm.Label, r.Cell.Label(), row.Note))
		}
	}
	var own []bench.BarResult
	for _, b := range bars {
		if b.Plan == p.Plan() {
			own = append(own, b)
		}
	}
	for _, s := range bench.Summarise(own) {
		v.Bars = append(v.Bars, newBarView(s))
	}
	v.NoBars = bench.Sentence(bench.NoBars(p))
	for _, run := range p.Seeds {
		v.Runs = append(v.Runs, newRunView(p, run))
	}
	return v, nil
}

func newRunView(p *bench.Pooled, run bench.Run) runView {
	v := runView{Seed: run.Seed, Rate: fmt.Sprintf("%.4g", run.RateRPS), Saturation: "–", Order: strings.Join(run.Order, ", ")}
	if run.SaturationRPS > 0 {
		v.Saturation = fmt.Sprintf("%.4g", run.SaturationRPS)
	}
	if p.Conditions.Machine.Kind == "lab" {
		v.Replay = replay(p, run)
	}
	return v
}

func newBarView(s bench.BarSummary) barView {
	r := s.Worst
	v := barView{
		Pass: s.Failed == 0, Text: r.Text, Arm: r.Arm, Limit: r.LimitText(), Measured: bench.FormatRatio(r.Measured),
		Where: bench.StepLabel(r.Background, r.Visit), Stock: "–", Overall: "–", Spread: "–", Verdict: s.Verdict(), Note: s.Note(),
	}
	if r.BestStock != "" {
		v.Stock = fmt.Sprintf("%.2f (%s)", r.BestStockRatio, r.BestStock)
	}
	if r.BestOverall != "" {
		v.Overall = fmt.Sprintf("%.2f", r.OverBestOverall)
	}
	if r.SpreadHigh > 0 {
		v.Spread = fmt.Sprintf("%.2f–%.2f", r.SpreadLow, r.SpreadHigh)
	}
	return v
}

// conditions are what the figures hold for.
func conditions(p *bench.Pooled) [][2]string {
	c := p.Conditions
	rows := [][2]string{
		{"Kernel", c.Kernel},
		{"Application CPUs", fmt.Sprint(c.CPUs)},
		{"Window", fmt.Sprintf("%g s", c.Seconds)},
	}
	add := func(name, value string, known bool) {
		if known {
			rows = append(rows, [2]string{name, value})
		}
	}
	add("Warm-up", fmt.Sprintf("%g s", c.WarmUp), c.WarmUp > 0)
	add("Background", p.SpinnerText(), p.SpinnerText() != "")
	add("Machine", "lab: a virtual machine that counts instructions", c.Machine.Kind == "lab")
	add("Machine", c.Machine.Kind, c.Machine.Kind != "lab")
	add("Speed of a CPU", fmt.Sprintf("%.4g million instructions a guest second", c.Machine.MIPSPerCPU), c.Machine.MIPSPerCPU > 0)
	add("Longest turn of a CPU", fmt.Sprintf("%d µs", c.Machine.QuantumUS), c.Machine.QuantumUS > 0)
	add("Emulator", c.Machine.Emulator, c.Machine.Emulator != "")
	add("One preemption costs", bench.FormatMS(p.PreemptionMS)+" ms (median over seeds)", p.PreemptionMS > 0)
	add("SHA-256 of kernel", c.Hashes.Kernel, c.Hashes.Kernel != "")
	add("SHA-256 of emulator", c.Hashes.Emulator, c.Hashes.Emulator != "")
	add("SHA-256 of guest", c.Hashes.Guest, c.Hashes.Guest != "")
	add("SHA-256 of BPF object", c.Hashes.BPF, c.Hashes.BPF != "")
	return rows
}

// armsOf are the arms that the pools have, in the lab's order, then those that it does not know.
func armsOf(pools []*bench.Pooled) []armView {
	var unknown []string
	present := map[string]bool{}
	for _, p := range pools {
		for _, a := range p.Arms {
			name, _, _ := strings.Cut(a.Label, " #") // a repeated arm is the same arm
			if _, ok := plan.FindArm(name); !ok && !present[name] {
				unknown = append(unknown, name)
			}
			present[name] = true
		}
	}
	var out []armView
	for _, a := range plan.Arms {
		if present[a.Name] {
			out = append(out, armView{a.Name, a.Summary})
		}
	}
	for _, name := range unknown {
		out = append(out, armView{Name: name, Summary: "an arm that this version of the lab does not know"})
	}
	return out
}

// commonArms are the arms that every pool has.
func commonArms(pools []*bench.Pooled) []string {
	var out []string
	if len(pools) == 0 {
		return nil
	}
	for _, a := range pools[0].Arms {
		if !slices.ContainsFunc(pools, func(p *bench.Pooled) bool { return p.Arm(a.Label) == nil }) {
			out = append(out, a.Label)
		}
	}
	return out
}
