package bench

import (
	"math"
	"slices"
)

// percentile is the value at fraction q (0 to 1) of the values, interpolated between neighbours. NaN for none.
func percentile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	at := q * float64(len(sorted)-1)
	low := int(at)
	high := min(low+1, len(sorted)-1)
	return sorted[low] + (at-float64(low))*(sorted[high]-sorted[low])
}

func median(values []float64) float64 { return percentile(values, 0.5) }

func geometricMean(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sum := 0.0
	for _, v := range values {
		sum += math.Log(v)
	}
	return math.Exp(sum / float64(len(values)))
}

// over is a/b, NaN where either is missing or b is not positive, so that no infinity reaches a report.
func over(a, b float64) float64 {
	if math.IsNaN(a) || !(b > 0) {
		return math.NaN()
	}
	return a / b
}

// smaller is min, except that a missing value (NaN) loses.
func smaller(a, b float64) float64 {
	if math.IsNaN(a) || b < a {
		return b
	}
	return a
}

// larger is max, except that a missing value (NaN) loses.
func larger(a, b float64) float64 {
	if math.IsNaN(a) || b > a {
		return b
	}
	return a
}
