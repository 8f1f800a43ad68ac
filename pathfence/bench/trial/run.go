package trial

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"temper.dev/temper/pathfence/bench/load"
	"temper.dev/temper/pathfence/bench/record"
	"temper.dev/temper/pathfence/bench/stage"
)

// Programs are what is started.
type Programs struct {
	Node    string   // pathfence-bench-node: the downstreams, and the services in C++
	Service []string // the command line of the service that paths share, before an arm's own flags
	Full    []string // the same under saturation, warmed up until a virtual machine has compiled it; none: the same, and no longer
	Shop    []string // the command line of the shop's services, before their names; none but in Java
}

// Run is one arm under one disturbance.
type Run struct {
	Programs
	Scale       Scale
	Timeline    Timeline
	Arm         Arm
	Turns       []Arm // arms that take turns; none: it is Arm's run
	Disturbance Disturbance
	Repetition  int
	Seed        uint64 // equal seeds give all arms the same requests
}

// lead is what threads of a run have to get ready before it starts.
const lead = 100 * time.Millisecond

// clientsNice is what the clients have beside neighbours, which have 0, as the services do: clients are on another machine,
// and what is measured is what neighbours do to the services.
const clientsNice = -10

// Do starts the processes, offers the load, disturbs, and tells what each path got.
func (r Run) Do(ctx context.Context) (rows []record.Row, err error) {
	if r.Turns != nil {
		return r.takeTurns(ctx)
	}
	s, err := r.start()
	defer func() { err = errors.Join(err, s.stop()) }()
	if err != nil {
		return nil, err
	}
	defer s.client.Close()
	if len(s.beside) > 0 {
		back, fault := stage.Prefer(clientsNice)
		if fault != nil {
			return nil, fault
		}
		defer func() { err = errors.Join(err, back()) }()
	}

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	start := time.Now().Add(lead)
	marks := map[time.Duration]stage.CPU{}
	script := r.script(s, marks)
	var (
		played error
		done   sync.WaitGroup
	)
	done.Go(func() {
		if played = play(ctx, start, script); played != nil {
			cancel()
		}
	})
	results, err := r.offer(ctx, start, s.client)
	done.Wait()
	if err = errors.Join(err, played); err != nil {
		return nil, fmt.Errorf("%s, %s: %w", r.Arm.Name, r.Disturbance.Name, err)
	}
	return r.rows(results, marks), nil
}

// script is what is done at which time: what disturbs, and looks at who uses the CPUs.
func (r Run) script(s *set, marks map[time.Duration]stage.CPU) []action {
	own := []int{os.Getpid()}
	for _, p := range s.processes {
		own = append(own, p.PID())
	}
	script := r.Disturbance.actions(r.Timeline, s.disturbed, s.beside)
	for _, at := range []time.Duration{r.Timeline.WarmUp, r.Timeline.over(), r.Timeline.end()} {
		script = append(script, action{at, func() (err error) {
			marks[at], err = stage.ReadCPU("/proc", own)
			return err
		}})
	}
	slices.SortStableFunc(script, func(a, b action) int { return int(a.at - b.at) })
	return script
}

// play does each action when it is due.
func play(ctx context.Context, start time.Time, script []action) error {
	for _, a := range script {
		select {
		case <-time.After(time.Until(start.Add(a.at))):
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := a.do(); err != nil {
			return err
		}
	}
	return nil
}

// offer gives the load that the arm and the disturbance ask for.
func (r Run) offer(ctx context.Context, start time.Time, client load.Target) ([]load.Result, error) {
	flows := r.Disturbance.flows(r.Scale, r.Timeline, r.groups()...)
	if r.Arm.Name == record.Capacity {
		return r.saturate(ctx, start, start.Add(r.Timeline.end()), client, r.Scale.Slowed.Threads, flows...)
	}
	return load.Open(ctx, start, load.Schedule(flows, r.Timeline.end(), r.Seed), client, r.Scale.Patience)
}

// groups are whose paths are asked for.
func (r Run) groups() []string {
	switch r.Arm.Name {
	case record.Alone:
		return []string{record.Innocent}
	case record.Capacity:
		return []string{record.Slowed}
	}
	return []string{record.Innocent, record.Slowed}
}

// saturate keeps so many requests of each flow under way until the end.
func (r Run) saturate(ctx context.Context, start, end time.Time, client load.Target, concurrency int, flows ...load.Flow) ([]load.Result, error) {
	var (
		mutex sync.Mutex
		all   []load.Result
		fault error
		under sync.WaitGroup
	)
	for _, f := range flows {
		under.Go(func() {
			results, err := load.Closed(ctx, start, end, concurrency, f, r.Seed, client, r.Scale.Patience)
			mutex.Lock()
			defer mutex.Unlock()
			all, fault = append(all, results...), errors.Join(fault, err)
		})
	}
	under.Wait()
	return all, fault
}

// rows tells what each path got in each part of the run.
func (r Run) rows(results []load.Result, marks map[time.Duration]stage.CPU) (rows []record.Row) {
	for _, p := range r.parts() {
		w := record.Window{From: p.from, To: p.to, Target: r.Scale.Target, Patience: r.Scale.Patience}
		for _, group := range r.groups() {
			row := r.row(w, results, group)
			row.Arm, row.Disturbance, row.Repetition = r.Arm.Name, p.disturbance, r.Repetition
			row.Judge(stage.Foreign(marks[p.from], marks[p.to]), r.Timeline.Late)
			rows = append(rows, row)
		}
	}
	return rows
}

// part is a time of a run that rows tell of.
type part struct {
	disturbance string
	from, to    time.Duration
}

// parts are the time of the disturbance; and after the downstream was slowed, that of recovery.
func (r Run) parts() []part {
	parts := []part{{r.Disturbance.Name, r.Timeline.WarmUp, r.Timeline.over()}}
	if r.Disturbance.Name == record.Slow && r.Arm.Name != record.Capacity || r.Disturbance.Name == record.None && r.Arm.Name == record.Alone {
		parts = append(parts, part{record.Recovery, r.Timeline.over(), r.Timeline.end()})
	}
	return parts
}

// row adds up the requests of a group's paths, and tells of each path where there are several.
func (r Run) row(w record.Window, results []load.Result, group string) record.Row {
	routes := r.Disturbance.topology.of(group)
	var all []load.Result
	paths := map[string]record.Figures{}
	for _, route := range routes {
		paths[route.Path] = w.Measure(results, route.Path).Figures
		for _, one := range results {
			if one.Path == route.Path {
				one.Path = group
				all = append(all, one)
			}
		}
	}
	row := w.Measure(all, group)
	if len(routes) > 1 {
		row.Paths = paths
	}
	return row
}
