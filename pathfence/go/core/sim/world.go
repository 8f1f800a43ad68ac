// Package sim is a closed simulation of a service that several paths share: open-loop arrivals, a pool of workers, and
// downstreams with a capacity of their own that get slow, freeze and recover. It runs the fence of the reference model
// against other arms. Equal seeds give equal figures.
//
// world.go: the service, its downstreams and its clients. arms.go: who gets a worker. plans.go: what is run.
// report.go: figures, and the bars that they are held against.
package sim

import (
	"container/heap"
	"math"
	"math/rand/v2"
)

const (
	ms     = int64(1_000_000)
	second = 1000 * ms
)

// Step is a value from a time on.
type Step struct {
	At    int64
	Value float64
}

// at gives the value in force.
func at(steps []Step, t int64, first float64) float64 {
	v := first
	for _, s := range steps {
		if s.At > t {
			break
		}
		v = s.Value
	}
	return v
}

// Downstream has Servers that each serve one request at a time, in order of arrival.
type Downstream struct {
	Servers int
	Service int64   // mean, nanoseconds
	Shape   int     // of the Erlang distribution of the service time; 0: constant
	Heavy   float64 // one request in twenty takes so many times as long; 0: none does
	Speed   []Step  // 1 unless said otherwise; 0 is frozen
	queue   []*call // waiting
	busy    int
}

// finish is when work that starts now ends, at the speeds to come.
func (d *Downstream) finish(now int64, work float64) int64 {
	t := float64(now)
	for {
		speed, next := at(d.Speed, int64(t), 1), math.Inf(1)
		for _, s := range d.Speed {
			if float64(s.At) > t {
				next = float64(s.At)
				break
			}
		}
		if speed > 0 && t+work/speed <= next {
			return int64(t + work/speed)
		}
		if math.IsInf(next, 1) {
			return math.MaxInt64 / 2
		}
		work -= (next - t) * speed
		t = next
	}
}

func (d *Downstream) work(r *rand.Rand) float64 {
	mean := float64(d.Service)
	if d.Heavy > 0 && r.IntN(20) == 0 {
		mean *= d.Heavy
	}
	if d.Shape == 0 {
		return mean
	}
	x := 0.0
	for range d.Shape {
		x += r.ExpFloat64()
	}
	return x * mean / float64(d.Shape)
}

// Path is what one class of clients asks for.
type Path struct {
	Rate     []Step // arrivals a second; Poisson
	Down     int    // index of its downstream
	Stubborn bool   // its clients try again where they are refused, although the answer says not to
}

// A stubborn client asks again so long after a refusal, until so long after it asked first.
const (
	again    = 10 * ms
	patience = second
)

// World is one run.
type World struct {
	Workers int
	Paths   []Path
	Downs   []Downstream
	SLO     int64 // a response later than this is no good
	End     int64
	Seed    uint64
	Pauses  []Step // at such a time the service itself stands still for Value seconds
}

// Result is the fate of one request; one that a client tries again is another.
type Result struct {
	Path    int
	Arrived int64
	Latency int64 // -1: shed; -2: not answered when the run ended
}

type call struct {
	id      int64
	path    int
	arrived int64
	first   int64 // when its client asked for the first time
	work    float64
}

type event struct {
	at    int64
	order int64
	do    func(now int64)
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].order < e[j].order
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any     { o := *e; x := o[len(o)-1]; *e = o[:len(o)-1]; return x }

type run struct {
	World
	arm     Arm
	q       events
	order   int64
	id      int64 // of the last call
	calls   map[int64]*call
	results []Result
	place   map[int64]int // index in results
}

// Run plays the world with an arm.
func (w World) Run(arm Arm) []Result {
	r := &run{World: w, arm: arm, calls: map[int64]*call{}, place: map[int64]int{}}
	r.Downs = append([]Downstream(nil), w.Downs...)
	for p := range w.Paths {
		src := rand.New(rand.NewPCG(w.Seed, uint64(p)+1))
		for t := int64(0); ; {
			rate := at(w.Paths[p].Rate, t, 0)
			if rate <= 0 {
				t += 10 * ms
			} else {
				t += int64(src.ExpFloat64() / rate * float64(second))
			}
			if t >= w.End {
				break
			}
			if rate <= 0 {
				continue
			}
			c := call{path: p, first: t, work: r.Downs[w.Paths[p].Down].work(src)}
			r.ask(t, c)
		}
	}
	for t := int64(0); t < w.End; t += 25 * ms {
		r.at(t, func(now int64) { r.apply(now, arm.Tick(now)) })
	}
	for len(r.q) > 0 && r.q[0].at <= w.End+2*second {
		e := heap.Pop(&r.q).(event)
		e.do(r.awake(e.at))
	}
	return r.results
}

// awake delays what happens in the service while it stands still.
func (r *run) awake(t int64) int64 {
	for _, p := range r.Pauses {
		end := p.At + int64(p.Value*float64(second))
		if t >= p.At && t < end {
			return end
		}
	}
	return t
}

func (r *run) at(t int64, do func(int64)) {
	r.order++
	heap.Push(&r.q, event{t, r.order, do})
}

// ask lets a client ask at a time.
func (r *run) ask(t int64, c call) {
	r.id++
	c.id, c.arrived = r.id, t
	r.at(t, func(now int64) { r.arrive(now, &c) })
}

func (r *run) arrive(now int64, c *call) {
	r.calls[c.id] = c
	r.place[c.id] = len(r.results)
	r.results = append(r.results, Result{c.path, c.arrived, -2})
	r.apply(now, r.arm.Arrive(now, c.id, c.path, c.arrived+r.SLO))
}

// apply carries out what the arm decided.
func (r *run) apply(now int64, ds []Decision) {
	for _, d := range ds {
		c := r.calls[d.ID]
		if d.Shed {
			r.results[r.place[c.id]].Latency = -1
			delete(r.calls, c.id)
			r.refused(now, *c)
			continue
		}
		down := &r.Downs[r.Paths[c.path].Down]
		if down.busy < down.Servers {
			r.serve(now, down, c)
		} else {
			down.queue = append(down.queue, c)
		}
	}
}

// refused lets a client that is stubborn ask again.
func (r *run) refused(now int64, c call) {
	if r.Paths[c.path].Stubborn && now+again < c.first+patience {
		r.ask(now+again, c)
	}
}

func (r *run) serve(now int64, d *Downstream, c *call) {
	d.busy++
	r.at(d.finish(now, c.work), func(now int64) {
		d.busy--
		if len(d.queue) > 0 {
			next := d.queue[0]
			d.queue = d.queue[1:]
			r.serve(now, d, next)
		}
		r.results[r.place[c.id]].Latency = now - c.arrived
		delete(r.calls, c.id)
		r.apply(now, r.arm.Done(now, c.id))
	})
}
