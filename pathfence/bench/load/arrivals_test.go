package load

import (
	"math"
	"slices"
	"testing"
	"time"
)

const long = 200 * time.Second

func flow(path string, rate float64) Flow {
	return Flow{Path: path, Rate: Constant(rate), Peak: rate, Work: 10 * time.Millisecond}
}

func TestEqualSeedsGiveEqualArrivals(t *testing.T) {
	flows := []Flow{flow("a", 200), flow("b", 100)}
	one, two := Schedule(flows, long, 7), Schedule(flows, long, 7)
	if !slices.Equal(one, two) {
		t.Error("equal seeds differ")
	}
	if slices.Equal(one, Schedule(flows, long, 8)) {
		t.Error("another seed gives the same arrivals")
	}
	if !slices.IsSortedFunc(one, func(a, b Arrival) int { return int(a.At - b.At) }) {
		t.Error("arrivals are not in order")
	}
}

// What a path is asked for is the same whether it is alone or not, so that figures can be paired.
func TestAPathAloneGetsTheSameRequests(t *testing.T) {
	both := Schedule([]Flow{flow("a", 200), flow("b", 100)}, long, 7)
	alone := Schedule([]Flow{flow("b", 100)}, long, 7)
	if !slices.Equal(alone, slices.DeleteFunc(both, func(a Arrival) bool { return a.Path == "a" })) {
		t.Error("b has other requests when it is alone")
	}
}

// A Poisson process: counts have their mean as variance, gaps are exponential, and where it is thinned the same holds.
func TestArrivalsArePoisson(t *testing.T) {
	const rate = 200.0
	for _, f := range []Flow{flow("a", rate), {Path: "a", Rate: Constant(rate), Peak: 3 * rate, Work: 10 * time.Millisecond}} {
		list := Schedule([]Flow{f}, long, 7)
		counts := make([]float64, int(long/(100*time.Millisecond)))
		longGaps, work, before := 0.0, 0.0, time.Duration(0)
		for _, a := range list {
			counts[a.At/(100*time.Millisecond)]++
			if a.At-before > time.Duration(float64(time.Second)/rate) {
				longGaps++
			}
			work += a.Work.Seconds()
			before = a.At
		}
		n := float64(len(list))
		close := func(what string, got, want, within float64) {
			t.Helper()
			if math.Abs(got-want) > within*want {
				t.Errorf("%s is %.4g, not about %.4g", what, got, want)
			}
		}
		close("the number of arrivals", n, rate*long.Seconds(), 0.02)
		close("the variance of counts over their mean", variance(counts)/(rate/10), 1, 0.1)
		close("the share of gaps above the mean", longGaps/n, math.Exp(-1), 0.03)
		close("the mean work", work/n, 0.010, 0.03)
	}
}

func variance(values []float64) float64 {
	mean, sum := 0.0, 0.0
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		sum += (v - mean) * (v - mean)
	}
	return sum / float64(len(values)-1)
}

func TestARateThatMoves(t *testing.T) {
	f := Flow{Path: "a", Peak: 400, Rate: func(at time.Duration) float64 {
		if at < long/2 {
			return 100
		}
		return 400
	}}
	first, second := 0.0, 0.0
	for _, a := range Schedule([]Flow{f}, long, 7) {
		if a.At < long/2 {
			first++
		} else {
			second++
		}
	}
	if math.Abs(first-10_000) > 400 || math.Abs(second-40_000) > 800 {
		t.Errorf("%v and %v arrivals, not about 10000 and 40000", first, second)
	}
}
