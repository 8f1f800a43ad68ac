package record

import (
	"fmt"
	"math"
	"slices"
	"time"

	"temper.dev/temper/pathfence/bench/load"
)

const (
	bin  = 50 * time.Millisecond
	bins = 60
)

// Window is when requests were due that a row tells of, and what counts as in time.
type Window struct {
	From, To         time.Duration
	Target, Patience time.Duration
}

// Measure tells what became of one path's requests of a window. Who they belong to is filled in by the caller.
func (w Window) Measure(results []load.Result, path string) Row {
	row := Row{Path: path, Onset: make([]float64, bins)}
	var latencies, late []float64
	offered, good := 0, 0
	for _, r := range results {
		if r.Path != path || r.At < w.From || r.At >= w.To {
			continue
		}
		offered++
		latency := r.Latency
		switch {
		case r.Fate == load.Refused:
			row.Shed++
		case r.Fate == load.Answered && latency <= w.Target:
			good++
		default:
			row.Timeouts++
		}
		if r.Fate != load.Answered {
			latency = w.Patience
		}
		if r.Fate != load.Refused {
			latencies = append(latencies, inMS(latency))
		}
		late = append(late, inMS(r.Late))
		if i := int((r.At - w.From) / bin); i < bins {
			row.Onset[i] = round(row.Onset[i] + inMS(latency))
		}
	}
	seconds := (w.To - w.From).Seconds()
	row.Offered, row.Goodput = float64(offered)/seconds, float64(good)/seconds
	row.P50, row.P99, row.LateMS = percentile(latencies, 0.5), percentile(latencies, 0.99), percentile(late, 0.99)
	return row
}

// mostForeign is how many CPUs others may have had where a row is to count.
const mostForeign = 0.1

// Judge says whether a row counts, by what others took meanwhile and by whether requests were sent when they were due.
func (r *Row) Judge(foreignCPUs float64, mostLate time.Duration) {
	r.ForeignCPUs = foreignCPUs
	switch {
	case foreignCPUs > mostForeign:
		r.InvalidReason = fmt.Sprintf("others had %.2f CPUs, more than %.2f", foreignCPUs, mostForeign)
	case r.LateMS > inMS(mostLate):
		r.InvalidReason = fmt.Sprintf("one in a hundred requests was sent %.1f ms late, more than %.0f", r.LateMS, inMS(mostLate))
	}
	r.Valid = r.InvalidReason == ""
}

// percentile is the smallest value that so many of all do not exceed, 0 of none.
func percentile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[max(0, int(math.Ceil(q*float64(len(values))))-1)]
}

func inMS(d time.Duration) float64 { return round(float64(d) / float64(time.Millisecond)) }

// round leaves microseconds.
func round(ms float64) float64 { return math.Round(ms*1000) / 1000 }
