// Package load offers requests to services at times that are fixed beforehand, whatever becomes of them.
//
// arrivals.go: when what is due. open.go: offers it. thrift.go, http.go: how a service is asked.
// closed.go: the other way, as many at a time as there may be, to find out what a downstream can serve.
package load

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Arrival is one request.
type Arrival struct {
	At   time.Duration // when it is due, from the start
	Path string
	Work time.Duration // what its downstream has to do for it
}

// Flow is what one path's clients ask for.
type Flow struct {
	Path string
	Rate func(at time.Duration) float64 // arrivals a second
	Peak float64                        // no rate is above it
	Work time.Duration                  // mean; the work of requests is exponential
}

// Constant is a rate that does not change.
func Constant(rate float64) func(time.Duration) float64 {
	return func(time.Duration) float64 { return rate }
}

// Schedule draws the Poisson arrivals of all flows up to a length, in order. A flow's arrivals depend on the seed, its
// path and its rate, not on the other flows: a path that is alone gets the same requests.
func Schedule(flows []Flow, length time.Duration, seed uint64) (all []Arrival) {
	for _, f := range flows {
		all = append(all, f.arrivals(length, seed)...)
	}
	slices.SortStableFunc(all, func(a, b Arrival) int { return int(a.At - b.At) })
	return all
}

// arrivals thins a Poisson process of the peak rate, which is exact however the rate moves.
func (f Flow) arrivals(length time.Duration, seed uint64) (list []Arrival) {
	source := f.source(seed)
	for at := 0.0; ; {
		at += source.ExpFloat64() / f.Peak
		due := time.Duration(at * float64(time.Second))
		if due >= length {
			return list
		}
		kept, work := source.Float64()*f.Peak < f.Rate(due), source.ExpFloat64()
		if kept {
			list = append(list, Arrival{due, f.Path, time.Duration(work * float64(f.Work))})
		}
	}
}

func (f Flow) source(seed uint64) *rand.Rand {
	stream := uint64(14695981039346656037) // FNV-1a
	for _, c := range []byte(f.Path) {
		stream = (stream ^ uint64(c)) * 1099511628211
	}
	return rand.New(rand.NewPCG(seed, stream))
}
