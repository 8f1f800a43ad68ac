package observe

import (
	"fmt"
	"math/bits"
	"slices"
	"time"
)

// Report sums violations up. Times are in microseconds, as exact as the trace is.
type Report struct {
	Seconds    float64  `json:"seconds"`
	Events     int      `json:"events"`
	Violations int      `json:"violations"`
	TotalUS    float64  `json:"total_us"`
	P50US      float64  `json:"p50_us"`
	P99US      float64  `json:"p99_us"`
	MaxUS      float64  `json:"max_us"`
	Longest    *Longest `json:"longest,omitempty"` // the first of them, if several are as long
	// Bucket i counts violations shorter than 2^i us, and not shorter than 2^(i-1); the last, all that are longer.
	Histogram []int `json:"histogram"`
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

// Summarize makes the report of a trace.
func Summarize(trace Trace, tasks map[int]Task) Report {
	list, unknown := Violations(trace, tasks)
	r := Report{
		Seconds: (trace.End - trace.Start).Seconds(), Events: len(trace.Events), UnknownTasks: len(unknown),
		Violations: len(list), Histogram: make([]int, buckets),
	}
	if len(list) == 0 {
		return r
	}
	lengths := make([]time.Duration, len(list))
	for i, v := range list {
		lengths[i] = v.Length
		r.TotalUS += microseconds(v.Length)
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
	rank := func(p int) float64 { return microseconds(lengths[(p*len(lengths)+99)/100-1]) }
	r.P50US, r.P99US, r.MaxUS = rank(50), rank(99), rank(100)
	return r
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
