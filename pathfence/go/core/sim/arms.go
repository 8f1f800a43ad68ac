package sim

import (
	"fmt"

	"temper.dev/temper/pathfence/go/core"
)

// Decision is a worker for a request, or none ever.
type Decision struct {
	ID   int64
	Shed bool
}

// Arm decides who gets a worker.
type Arm interface {
	Arrive(now, id int64, path int, deadline int64) []Decision
	Done(now, id int64) []Decision
	Tick(now int64) []Decision
}

// pool is one or several pools of fixed size, each with a queue in order of arrival.
type pool struct {
	free     []int
	queue    [][]waiter
	of       func(path int) int
	where    map[int64]int
	shedding bool
	spent    int64 // what a request is expected to take, smoothed
	began    map[int64]int64
}

type waiter struct{ id, arrived, deadline int64 }

// NewShared is the plain pool; shedding, it refuses what cannot be in time any more.
func NewShared(workers int, shedding bool) Arm {
	return newPools([]int{workers}, func(int) int { return 0 }, shedding)
}

// NewStatic gives each path an equal pool of its own.
func NewStatic(workers, paths int, shedding bool) Arm {
	sizes := make([]int, paths)
	for i := range sizes {
		sizes[i] = max(1, workers/paths)
	}
	return newPools(sizes, func(p int) int { return p }, shedding)
}

// NewAsync has no bound on what is in flight.
func NewAsync(shedding bool) Arm { return NewShared(1<<30, shedding) }

func newPools(sizes []int, of func(int) int, shedding bool) *pool {
	return &pool{free: sizes, queue: make([][]waiter, len(sizes)), of: of, where: map[int64]int{}, began: map[int64]int64{}, shedding: shedding}
}

func (p *pool) Arrive(now, id int64, path int, deadline int64) []Decision {
	i := p.of(path)
	p.where[id] = i
	p.queue[i] = append(p.queue[i], waiter{id, now, deadline})
	return p.pump(now, i)
}

func (p *pool) Done(now, id int64) []Decision {
	i := p.where[id]
	p.spent += (now - p.began[id] - p.spent) / 16
	delete(p.where, id)
	delete(p.began, id)
	p.free[i]++
	return p.pump(now, i)
}

func (p *pool) Tick(int64) []Decision { return nil }

func (p *pool) pump(now int64, i int) (out []Decision) {
	for len(p.queue[i]) > 0 && p.free[i] > 0 {
		w := p.queue[i][0]
		p.queue[i] = p.queue[i][1:]
		if p.shedding && now-w.arrived >= 20*ms && w.deadline-now < p.spent*14/10 {
			delete(p.where, w.id)
			out = append(out, Decision{w.id, true})
			continue
		}
		p.free[i]--
		p.began[w.id] = now
		out = append(out, Decision{w.id, false})
	}
	return out
}

// fence is the reference model.
type fence struct{ *core.Fence }

// NewFence gives each path a configured class.
func NewFence(workers, paths int, target int64, without core.Parts) Arm {
	cfg := core.Config{Workers: int64(workers), Target: target, Without: without}
	for p := range paths {
		cfg.Classes = append(cfg.Classes, core.ClassConfig{Name: pathKey(p), Keys: []string{pathKey(p)}})
	}
	f, err := core.New(cfg, 0)
	if err != nil {
		panic(err)
	}
	return fence{f}
}

func pathKey(p int) string { return fmt.Sprintf("path%d", p) }

func (f fence) Arrive(now, id int64, path int, deadline int64) []Decision {
	return decisions(f.Fence.Arrive(now, core.Request{ID: id, Key: pathKey(path), Deadline: deadline}))
}

func (f fence) Done(now, id int64) []Decision {
	return decisions(f.Fence.Done(now, id, core.OK))
}

func (f fence) Tick(now int64) []Decision { return decisions(f.Fence.Tick(now)) }

func decisions(events []core.Event) (out []Decision) {
	for _, e := range events {
		switch e.Do {
		case "grant":
			out = append(out, Decision{e.ID, false})
		case "shed":
			out = append(out, Decision{e.ID, true})
		}
	}
	return out
}
