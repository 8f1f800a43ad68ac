package sim

import "slices"

// Figures are what one path got from one arm between two times.
type Figures struct {
	Offered int
	Good    int // in time
	Shed    int
	Late    int // answered too late, or not at all
	P50     int64
	P99     int64 // of what was answered
}

// Measure looks at the requests of one path, or of all with path -1, that arrived in [from, to).
func Measure(results []Result, path int, from, to, slo int64) (f Figures) {
	var latencies []int64
	for _, r := range results {
		if path >= 0 && r.Path != path || r.Arrived < from || r.Arrived >= to {
			continue
		}
		f.Offered++
		switch {
		case r.Latency == -1:
			f.Shed++
		case r.Latency >= 0 && r.Latency <= slo:
			f.Good++
		default:
			f.Late++
		}
		if r.Latency >= 0 {
			latencies = append(latencies, r.Latency)
		}
	}
	if n := len(latencies); n > 0 {
		slices.Sort(latencies)
		f.P50, f.P99 = latencies[n/2], latencies[n*99/100]
	}
	return f
}

// Back is how long after onset a path's requests take, for half a second, at most a fifth more on average than the same
// requests took in a run in which the path was alone.
func Back(results, alone []Result) int64 {
	const bin = 50 * ms
	sum := func(rs []Result) []int64 {
		v := make([]int64, (Over-Onset)/bin)
		for _, r := range rs {
			if r.Arrived < Onset || r.Arrived >= Over {
				continue
			}
			l := r.Latency
			if l < 0 {
				l = second // shed, or never answered
			}
			v[(r.Arrived-Onset)/bin] += l
		}
		return v
	}
	a, b := sum(alone), sum(results)
	for i := 0; i+10 <= len(a); i++ {
		x, y := int64(0), int64(0)
		for j := i; j < i+10; j++ {
			x += a[j]
			y += b[j]
		}
		if y*5 <= x*6 {
			return int64(i) * bin
		}
	}
	return Over - Onset
}

// limited is the best that a path can do alone: the right number of workers, known in advance.
type limited struct {
	pool
	newest bool
	margin int64
}

// Servable is how many requests of path 0 any arm could serve in time during the disturbance: the best of a sweep over
// fixed limits, orders of service and margins, with the path alone.
func Servable(w World) int {
	w = w.Only(0)
	best := 0
	for _, times := range []int{4, 5, 6, 8} {
		for _, newest := range []bool{false, true} {
			for _, margin := range []int64{1, 4, 8} {
				limit := min(w.Workers, max(1, w.Downs[0].Servers*times/4))
				arm := &limited{pool: *newPools([]int{limit}, func(int) int { return 0 }, true), newest: newest, margin: w.SLO * margin / 16}
				best = max(best, Measure(w.Run(arm), 0, Onset, Over, w.SLO).Good)
			}
		}
	}
	return best
}

func (l *limited) Arrive(now, id int64, path int, deadline int64) []Decision {
	l.queue[0] = append(l.queue[0], waiter{id, now, deadline})
	return l.pump(now)
}

func (l *limited) Done(now, id int64) []Decision {
	l.free[0]++
	return l.pump(now)
}

func (l *limited) pump(now int64) (out []Decision) {
	for len(l.queue[0]) > 0 && l.free[0] > 0 {
		q := l.queue[0]
		w := q[0]
		if l.newest {
			w = q[len(q)-1]
			l.queue[0] = q[:len(q)-1]
		} else {
			l.queue[0] = q[1:]
		}
		shed := w.deadline-now < l.margin
		if !shed {
			l.free[0]--
		}
		out = append(out, Decision{w.id, shed})
	}
	return out
}
