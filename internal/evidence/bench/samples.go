package bench

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// nsPerMS turns the histograms' unit into the figures'.
const nsPerMS = 1e6

// bin is a bucket of one seed's histogram that holds something. Histograms are kept sparse, because a bootstrap
// walks them a thousand times, and a window fills a few hundred of their 50,000 buckets.
type bin struct {
	ns    int64 // the bucket's upper end, as HDR's own percentiles report
	count int64
	seed  int // index into the pool's seeds
}

// decodeBins reads a window's histogram.
func decodeBins(encoded string, seed int) ([]bin, error) {
	h, err := hdrhistogram.Decode([]byte(encoded))
	if err != nil {
		return nil, fmt.Errorf("histogram: %w", err)
	}
	var bins []bin
	for _, b := range h.Distribution() {
		if b.Count > 0 {
			bins = append(bins, bin{ns: b.To, count: b.Count, seed: seed})
		}
	}
	return bins, nil
}

func sortBins(bins []bin) {
	slices.SortStableFunc(bins, func(a, b bin) int { return cmp.Compare(a.ns, b.ns) })
}

// quantiles are the values in ms below which the given fractions (ascending, 0 to 1) of the bins lie, where seed i
// counts weights[i] times. All are NaN if nothing counts.
func quantiles(bins []bin, weights []int, fractions ...float64) []float64 {
	var total int64
	for _, b := range bins {
		total += b.count * int64(weights[b.seed])
	}
	out := make([]float64, len(fractions))
	for i := range out {
		out[i] = math.NaN()
	}
	var seen int64
	next := 0
	for _, b := range bins {
		seen += b.count * int64(weights[b.seed])
		for next < len(fractions) && total > 0 && seen >= rank(fractions[next], total) {
			out[next] = float64(b.ns) / nsPerMS
			next++
		}
	}
	return out
}

// rank is the 1-based place of a quantile among n sorted values, rounded as HDR's own percentiles are: one window gives
// the figures of its record.
func rank(fraction float64, n int64) int64 {
	return min(max(1, int64(fraction*float64(n)+0.5)), n)
}
