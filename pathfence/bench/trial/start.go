package trial

import (
	"errors"
	"fmt"
	"slices"

	"temper.dev/temper/pathfence/bench/record"
	"temper.dev/temper/pathfence/bench/stage"
)

// set is the processes of a run.
type set struct {
	processes []*stage.Process // all of them
	disturbed *stage.Process   // the store that disturbances disturb
	beside    []*stage.Process // neighbours
	ports     map[string]int   // where clients ask for a path
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

// start starts the topology's stores and services, and the neighbours; to measure what the disturbed store can serve, that
// alone.
func (r Run) start() (*set, error) {
	s := &set{ports: map[string]int{}}
	topology := r.Disturbance.topology
	up := map[string]running{}
	for _, m := range topology.members() {
		if r.Arm.Name == record.Capacity && m.name != topology.Disturbed {
			continue
		}
		p, err := r.startMember(s, m, up)
		if err != nil {
			return s, fmt.Errorf("%s: %w", m.name, err)
		}
		up[m.name] = running{m, p}
	}
	s.disturbed = up[topology.Disturbed].process
	if err := r.entries(s, up); err != nil {
		return s, err
	}
	for _, kind := range r.Disturbance.neighbours {
		p, err := s.add(r.Node, kind)
		if err != nil {
			return s, err
		}
		s.beside = append(s.beside, p)
	}
	return s, nil
}

// entries says where clients ask for each path.
func (r Run) entries(s *set, up map[string]running) (err error) {
	if r.Arm.Name == record.Capacity {
		s.ports[record.Slowed], err = up[r.Disturbance.topology.Disturbed].port(record.Slowed)
		return err
	}
	for _, route := range r.Disturbance.topology.Routes {
		if s.ports[route.Path], err = up[route.First.Name].port(route.Path); err != nil {
			return err
		}
	}
	return nil
}

// startMember starts a store or a service; those that it calls are up.
func (r Run) startMember(s *set, m member, up map[string]running) (*stage.Process, error) {
	t := r.Disturbance.topology
	if m.store() {
		return s.add(r.Node, t.storeFlags(m.name, r.Scale)...)
	}
	ports, services := map[string][]int{}, false
	for path, called := range m.calls {
		for _, name := range called {
			port, err := up[name].port(path)
			if err != nil {
				return nil, err
			}
			ports[path] = append(ports[path], port)
			services = services || !up[name].store()
		}
	}
	line := slices.Concat(r.Service[1:], r.Arm.service(t.server(m, r.Scale), ports))
	if services {
		line = append(line, r.Arm.onward()...)
	}
	return s.add(r.Service[0], line...)
}

func (t Topology) storeFlags(name string, s Scale) []string {
	threads, percent := s.Innocent.Threads, 100
	if name == t.Disturbed {
		threads = s.Slowed.Threads
	}
	if slices.Contains(t.Quick, name) {
		percent = 5
	}
	return []string{"downstream", "--threads", fmt.Sprint(threads), "--percent", fmt.Sprint(percent)}
}

// running is a store or a service that is up.
type running struct {
	member
	process *stage.Process
}

// port is where it is asked for a path: some have a port for each, others one for all.
func (r running) port(path string) (int, error) {
	if r.process == nil {
		return 0, errors.New("it calls somebody who calls it")
	}
	for _, name := range []string{path, "service", "downstream"} {
		if port, ok := r.process.Ports[name]; ok {
			return port, nil
		}
	}
	return 0, fmt.Errorf("%s listens on %v, and not for path %q", r.name, r.process.Ports, path)
}
