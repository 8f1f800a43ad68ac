package observe

import (
	"fmt"
	"math/bits"
	"slices"
	"time"
)

// Report sums violations up. Times are in microseconds, as exact as the trace is.
type Report struct {
	Seconds    float64 `json:"seconds"`
	Events     int     `json:"events"`
	Violations int     `json:"violations"`
	TotalUS    float64 `json:"total_us"`
	// ExcessUS is what of that lies beyond the time that each violation was allowed, which is what interrupting takes.
	ExcessUS float64  `json:"excess_us"`
	P50US    float64  `json:"p50_us"`
	P99US    float64  `json:"p99_us"`
	P999US   float64  `json:"p999_us"`
	MaxUS    float64  `json:"max_us"`
	Longest  *Longest `json:"longest,omitempty"` // the first of them, if several are as long
	// Bucket i counts violations shorter than 2^i us, and not shorter than 2^(i-1); the last, all that are longer.
	Histogram []int `json:"histogram"`
	// CPU time of the tasks of both roles, and of CPUs that idled while background could have run there (see Use).
	HigherUS     float64 `json:"higher_us"`
	BackgroundUS float64 `json:"background_us"`
	StrandedUS   float64 `json:"stranded_us"`
	// Tasks whose tier is not known, since they came and went unseen: what they did is not in the figures.
	UnknownTasks int `json:"unknown_tasks"`
}

// Longest is a violation with the names of who took part: where to look further.
type Longest struct {
	AtSeconds  float64 `json:"at_seconds"` // since the recording began
	CPU        int     `json:"cpu"`
	US         float64 `json:"us"`
	Background string  `json:"background"` // what ran, as name[process id]
	Waiting    string  `json:"waiting"`    // who waited at its start
}

const buckets = 28

// Summarize makes the report of a trace, with so much time allowed to each violation.
func Summarize(trace Trace, tasks map[int]Task, allowed time.Duration) Report {
	list, use, unknown := Violations(trace, tasks)
	r := Report{
		Seconds: (trace.End - trace.Start).Seconds(), Events: len(trace.Events), UnknownTasks: len(unknown),
		Violations: len(list), Histogram: make([]int, buckets),
		HigherUS: microseconds(use.Higher), BackgroundUS: microseconds(use.Background), StrandedUS: microseconds(use.Stranded),
	}
	if len(list) == 0 {
		return r
	}
	lengths := make([]time.Duration, len(list))
	for i, v := range list {
		lengths[i] = v.Length
		r.TotalUS += microseconds(v.Length)
		r.ExcessUS += microseconds(max(0, v.Length-allowed))
		r.Histogram[min(buckets-1, bits.Len64(uint64(v.Length.Microseconds())))]++
	}
	longest := list[slices.Index(lengths, slices.Max(lengths))]
	name := func(pid int) string { return fmt.Sprintf("%s[%d]", tasks[pid].Name, pid) }
	r.Longest = &Longest{
		AtSeconds: (longest.Start - trace.Start).Seconds(), CPU: longest.CPU, US: microseconds(longest.Length),
		Background: name(longest.Background), Waiting: name(longest.Waiting),
	}
	slices.Sort(lengths)
	// The nearest rank: the smallest length that p per cent of the violations do not exceed.
	rank := func(thousandths int) float64 { return microseconds(lengths[(thousandths*len(lengths)+999)/1000-1]) }
	r.P50US, r.P99US, r.P999US, r.MaxUS = rank(500), rank(990), rank(999), rank(1000)
	return r
}

// Harvest is the share that background had of the CPU time that nobody else wanted and that it could have used;
// 1 where there was none.
func (r Report) Harvest() float64 {
	if r.StrandedUS == 0 {
		return 1
	}
	return r.BackgroundUS / (r.BackgroundUS + r.StrandedUS)
}

// Overlap and Excess are the time of all violations, and what of it was not allowed, over the CPU time of the tasks
// that must not wait; 0 where those had none.
func (r Report) Overlap() float64 { return r.overHigher(r.TotalUS) }

// Excess: see Overlap.
func (r Report) Excess() float64 { return r.overHigher(r.ExcessUS) }

func (r Report) overHigher(us float64) float64 {
	if r.HigherUS == 0 {
		return 0
	}
	return us / r.HigherUS
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
