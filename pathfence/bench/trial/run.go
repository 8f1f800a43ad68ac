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
	Node    string   // pathfence-bench-node: the downstreams
	Service []string // the command line of the service that paths share, before an arm's own flags
}

// Run is one arm under one disturbance.
type Run struct {
	Programs
	Scale       Scale
	Timeline    Timeline
	Arm         Arm
	Disturbance Disturbance
	Repetition  int
	Seed        uint64 // equal seeds give all arms the same requests
}

// lead is what threads of a run have to get ready before it starts.
const lead = 100 * time.Millisecond

// Do starts the processes, offers the load, disturbs, and tells what each path got.
func (r Run) Do(ctx context.Context) (rows []record.Row, err error) {
	s, err := r.start()
	defer func() { err = errors.Join(err, s.stop()) }()
	if err != nil {
		return nil, err
	}
	client := load.NewThrift(s.ports)
	defer client.Close()

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
	results, err := r.offer(ctx, start, client)
	done.Wait()
	if err = errors.Join(err, played); err != nil {
		return nil, fmt.Errorf("%s, %s: %w", r.Arm.Name, r.Disturbance.Name, err)
	}
	return r.rows(results, marks), nil
}

// set is the processes of a run.
type set struct {
	downstreams map[string]*stage.Process
	processes   []*stage.Process
	ports       map[string]int // where clients ask for a path
}

func (s *set) stop() (err error) {
	for _, p := range slices.Backward(s.processes) {
		err = errors.Join(err, p.Stop())
	}
	return err
}

func (s *set) add(program string, arguments ...string) (*stage.Process, error) {
	p, err := stage.Start(program, arguments...)
	if err == nil {
		s.processes = append(s.processes, p)
	}
	return p, err
}

func (r Run) start() (*set, error) {
	s := &set{downstreams: map[string]*stage.Process{}, ports: map[string]int{}}
	downstreams := map[string]int{}
	for path, p := range map[string]Path{record.Slowed: r.Scale.Slowed, record.Innocent: r.Scale.Innocent} {
		d, err := s.add(r.Node, "downstream", "--threads", fmt.Sprint(p.Threads))
		if err != nil {
			return s, err
		}
		s.downstreams[path] = d
		downstreams[path] = d.Ports["downstream"]
	}
	if r.Disturbance.one {
		downstreams[record.Innocent] = downstreams[record.Slowed]
	}
	if r.Arm.Name == record.Capacity {
		s.ports = downstreams
		return s, nil
	}
	ports, err := r.serve(s, downstreams)
	if err == nil && r.Disturbance.network {
		ports, err = r.front(s, ports)
	}
	s.ports = ports
	return s, err
}

// serve starts a service, and says where it is asked for each path.
func (r Run) serve(s *set, downstreams map[string]int, flags ...string) (map[string]int, error) {
	service, err := s.add(r.Service[0], slices.Concat(r.Service[1:], r.Arm.service(r.Scale, downstreams), flags)...)
	if err != nil {
		return nil, err
	}
	ports := map[string]int{}
	for path := range downstreams {
		port, ok := service.Ports[path]
		if !ok {
			port = service.Ports["service"]
		}
		ports[path] = port
	}
	return ports, nil
}

// front starts what stands before the shared service in the social network: a service for each path, and one before
// both, which is shared as well.
func (r Run) front(s *set, shared map[string]int) (map[string]int, error) {
	timelines := map[string]int{}
	for path, port := range shared {
		ports, err := r.serve(s, map[string]int{path: port}, r.Arm.onward()...)
		if err != nil {
			return nil, err
		}
		timelines[path] = ports[path]
	}
	return r.serve(s, timelines, r.Arm.onward()...)
}

// script is what is done at which time: what disturbs, and looks at who uses the CPUs.
func (r Run) script(s *set, marks map[time.Duration]stage.CPU) []action {
	own := []int{os.Getpid()}
	for _, p := range s.processes {
		own = append(own, p.PID())
	}
	script := r.Disturbance.actions(r.Timeline, s.downstreams[record.Slowed])
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
	flows := r.Disturbance.flows(r.Scale, r.Timeline)
	end := r.Timeline.end()
	switch {
	case r.Arm.Name == record.Capacity:
		return r.saturate(ctx, start, client, r.Scale.Slowed.Threads, flows[record.Slowed])
	case r.Disturbance.full:
		return r.saturate(ctx, start, client, r.Scale.Workers/2, flows[record.Slowed], flows[record.Innocent])
	case r.Arm.Name == record.Alone:
		return load.Open(ctx, start, load.Schedule([]load.Flow{flows[record.Innocent]}, end, r.Seed), client, r.Scale.Patience)
	}
	return load.Open(ctx, start, load.Schedule([]load.Flow{flows[record.Slowed], flows[record.Innocent]}, end, r.Seed), client, r.Scale.Patience)
}

// saturate keeps so many requests of each flow under way.
func (r Run) saturate(ctx context.Context, start time.Time, client load.Target, concurrency int, flows ...load.Flow) ([]load.Result, error) {
	var (
		mutex sync.Mutex
		all   []load.Result
		fault error
		under sync.WaitGroup
	)
	for _, f := range flows {
		under.Go(func() {
			results, err := load.Closed(ctx, start, start.Add(r.Timeline.end()), concurrency, f, r.Seed, client, r.Scale.Patience)
			mutex.Lock()
			defer mutex.Unlock()
			all, fault = append(all, results...), errors.Join(fault, err)
		})
	}
	under.Wait()
	return all, fault
}

// rows tells what each path got while it was disturbed; and after it was slowed, while it recovered.
func (r Run) rows(results []load.Result, marks map[time.Duration]stage.CPU) (rows []record.Row) {
	paths := []string{record.Innocent, record.Slowed}
	switch r.Arm.Name {
	case record.Alone:
		paths = paths[:1]
	case record.Capacity:
		paths = paths[1:]
	}
	tell := func(disturbance string, from, to time.Duration) {
		w := record.Window{From: from, To: to, Target: r.Scale.Target, Patience: r.Scale.Patience}
		for _, path := range paths {
			row := w.Measure(results, path)
			row.Arm, row.Disturbance, row.Repetition = r.Arm.Name, disturbance, r.Repetition
			row.Judge(stage.Foreign(marks[from], marks[to]), r.Timeline.Late)
			rows = append(rows, row)
		}
	}
	tell(r.Disturbance.Name, r.Timeline.WarmUp, r.Timeline.over())
	if r.Disturbance.Name == record.Slow && r.Arm.Name != record.Capacity || r.Disturbance.Name == record.None && r.Arm.Name == record.Alone {
		tell(record.Recovery, r.Timeline.over(), r.Timeline.end())
	}
	return rows
}
