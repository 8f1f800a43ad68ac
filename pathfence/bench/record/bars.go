package record

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
)

// Bar is a figure, and what it has to reach.
type Bar struct {
	What        string
	Disturbance string
	Against     string // the arm that it is compared with, if bars say so
	Got         Spread
	Bound       float64
	AtMost      bool // else at least
}

// Holds says whether the median reaches the bound; what was not measured does not.
func (b Bar) Holds() bool {
	if b.AtMost {
		return b.Got.Median <= b.Bound
	}
	return b.Got.Median >= b.Bound
}

// Name says what it is about, and whom it compares with.
func (b Bar) Name() string {
	if b.Against == "" {
		return b.What
	}
	return b.What + " (" + b.Against + ")"
}

// Limit is what has to be reached, in words.
func (b Bar) Limit() string {
	if b.AtMost {
		return fmt.Sprintf("≤ %g", b.Bound)
	}
	return fmt.Sprintf("≥ %g", b.Bound)
}

// Verdict is holds, missed or not measured.
func (b Bar) Verdict() string {
	switch {
	case b.Holds():
		return "holds"
	case b.Got.N == 0:
		return "not measured"
	}
	return "missed"
}

// Isolation are the disturbances of one downstream that bars speak of.
var Isolation = []string{Slow, Freeze, NetworkSlow, NetworkFreeze, SocialSlow, SocialFreeze, ShopSlow, ShopFreeze, MediaSlow, MediaFreeze}

// What no arm has to be compared under.
var undisturbed = []string{None, Network, Social, Shop, Media, Recovery, Saturation}

// Calm is the disturbance under which a path is alone for comparison: what is before the comma, where services are other
// than usual.
func Calm(disturbance string) string {
	services, _, _ := strings.Cut(disturbance, ",")
	if slices.Contains([]string{Network, Social, Shop, Media}, services) {
		return services
	}
	return None
}

// Bars holds the record against the path plane's bars, as far as it has what they speak of.
func (r Record) Bars() (bars []Bar) {
	for _, d := range Isolation {
		if r.has(Fence, d) {
			bars = append(bars, r.isolation(d)...)
		}
	}
	if r.has(Fence, Surge) {
		best, got := r.worst(Surge, func(arm string) func(look) float64 {
			return func(l look) float64 {
				return over(l.at(Fence, Surge, Innocent).Goodput, l.at(arm, Surge, Innocent).Goodput)
			}
		})
		bars = append(bars, Bar{"surging path's goodput over the best arm's", Surge, best, got, 0.99, false})
	}
	for _, d := range r.names(func(row Row) string { return row.Disturbance }) {
		if r.has(Fence, d) && !slices.Contains(undisturbed, d) {
			bars = append(bars, r.againstOthers(d)...)
		}
	}
	if r.has(Fence, Saturation) && r.has(Shared, Saturation) {
		bars = append(bars, Bar{"throughput at saturation over the shared pool's", Saturation, "", r.paired(func(l look) float64 {
			return over(total(l, Fence, Saturation), total(l, Shared, Saturation))
		}), 0.98, false})
	}
	for _, arm := range []string{Fence, Learned} {
		if counted, ok := r.Instructions[arm]; ok {
			added := counted - r.Instructions[Shared]
			what := "instructions that it adds to a request" + strings.TrimPrefix(arm, Fence)
			bars = append(bars, Bar{what, None, "", Spread{added, added, added, 1}, 5000, true})
		}
	}
	return bars
}

// isolation is what the bars say of one downstream that is slow or frozen.
func (r Record) isolation(d string) []Bar {
	bar := func(what string, bound float64, atMost bool, quantity func(look) float64) Bar {
		return Bar{what, d, "", r.paired(quantity), bound, atMost}
	}
	return []Bar{
		bar("healthy path's goodput over its offer", 0.99, false, func(l look) float64 {
			in := l.at(Fence, d, Innocent)
			return in.Goodput / in.Offered
		}),
		bar("healthy path's p99 over its p99 alone", 1.20, true, func(l look) float64 {
			return l.at(Fence, d, Innocent).P99 / l.at(Alone, Calm(d), Innocent).P99
		}),
		bar("slowed path's goodput over what its downstream can serve", 0.85, false, func(l look) float64 {
			return over(l.at(Fence, d, Slowed).Goodput, l.at(Capacity, d, Slowed).Goodput)
		}),
		bar("avoidable loss over the shared pool's", 0.05, true, func(l look) float64 {
			return over(avoidable(l, Fence, d), avoidable(l, Shared, d))
		}),
		bar("total goodput over the shared pool's", 2, false, func(l look) float64 {
			return over(total(l, Fence, d), total(l, Shared, d))
		}),
		bar("seconds until the healthy path is back", 0.5, true, func(l look) float64 {
			return Back(l.at(Fence, d, Innocent), l.at(Alone, Calm(d), Innocent))
		}),
	}
}

// againstOthers compares totals with the arm that comes closest, and counts the arms that are ahead on both paths.
func (r Record) againstOthers(d string) []Bar {
	closest, got := r.worst(d, func(arm string) func(look) float64 {
		return func(l look) float64 { return over(total(l, Fence, d), total(l, arm, d)) }
	})
	return []Bar{
		{"total goodput over every other arm's", d, closest, got, 0.98, false},
		{"arms ahead on both paths each time", d, "", r.ahead(d), 0, true},
	}
}

// ahead counts the arms that serve more of both paths than the fence in every repetition.
func (r Record) ahead(d string) Spread {
	count, n := 0.0, 0
	for _, arm := range r.others(d) {
		lead := func(path string) Spread {
			return r.paired(func(l look) float64 { return l.at(arm, d, path).Goodput - l.at(Fence, d, path).Goodput })
		}
		innocent, slowed := lead(Innocent), lead(Slowed)
		n = max(n, min(innocent.N, slowed.N))
		if innocent.Low > 0 && slowed.Low > 0 {
			count++
		}
	}
	if n == 0 {
		return spread(nil)
	}
	return Spread{count, count, count, n}
}

// worst is the arm with the least of a quantity among all but the fence and its variants.
func (r Record) worst(d string, quantity func(arm string) func(look) float64) (arm string, least Spread) {
	least = spread(nil)
	for _, other := range r.others(d) {
		if s := r.paired(quantity(other)); s.N > 0 && !(s.Median >= least.Median) {
			arm, least = other, s
		}
	}
	return arm, least
}

// others are what the fence is compared with: services without one.
func (r Record) others(d string) []string {
	return slices.DeleteFunc(r.names(func(row Row) string { return row.Arm }), func(arm string) bool {
		return strings.HasPrefix(arm, Fence) || arm == Alone || arm == Capacity || !r.has(arm, d)
	})
}

// over is a ratio of rates; less than one request a second counts as one.
func over(a, b float64) float64 { return a / max(b, 1) }

func total(l look, arm, d string) float64 {
	return l.at(arm, d, Innocent).Goodput + l.at(arm, d, Slowed).Goodput
}

// avoidable is what is lost of what could have been served: all of the innocent path, and of the slowed one what its
// downstream can serve.
func avoidable(l look, arm, d string) float64 {
	in, slowed := l.at(arm, d, Innocent), l.at(arm, d, Slowed)
	return in.Offered - in.Goodput + max(0, min(slowed.Offered, l.at(Capacity, d, Slowed).Goodput)-slowed.Goodput)
}

// Back is how many seconds after onset a path's requests take, for half a second, at most a fifth more than the same
// requests took when the path was alone. NaN where one of the two was not measured.
func Back(row, alone Row) float64 {
	const span, allowed = 10, 1.2
	n := min(len(row.Onset), len(alone.Onset))
	if n < span {
		return math.NaN()
	}
	for i := 0; i+span <= n; i++ {
		got, usual := 0.0, 0.0
		for j := i; j < i+span; j++ {
			got += row.Onset[j]
			usual += alone.Onset[j]
		}
		if got <= allowed*usual {
			return float64(i) * bin.Seconds()
		}
	}
	return float64(n) * bin.Seconds()
}

// WriteBars writes each bar with what was reached.
func WriteBars(w io.Writer, bars []Bar) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	defer table.Flush()
	fmt.Fprintln(table, "BAR\tDISTURBANCE\tBOUND\tMEDIAN [RANGE]\tN\t")
	for _, b := range bars {
		fmt.Fprintf(table, "%s\t%s\t%s\t%v\t%d\t%s\n", b.Name(), b.Disturbance, b.Limit(), b.Got, b.Got.N, b.Verdict())
	}
}
