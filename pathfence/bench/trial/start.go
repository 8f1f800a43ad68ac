package trial

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"temper.dev/temper/pathfence/bench/load"
	"temper.dev/temper/pathfence/bench/stage"
)

// set is the processes of a run.
type set struct {
	processes []*stage.Process // all of them
	disturbed *stage.Process   // the store that disturbances disturb
	beside    []*stage.Process // neighbours
	client    client           // asks for all paths
}

// client asks a topology: by Thrift on ports, or by HTTP at addresses.
type client interface {
	load.Target
	Close()
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

// addAll starts programs at the same time, and waits until all listen.
func (s *set) addAll(lines [][]string) ([]*stage.Process, error) {
	started, faults := make([]*stage.Process, len(lines)), make([]error, len(lines))
	var all sync.WaitGroup
	for i, line := range lines {
		all.Go(func() { started[i], faults[i] = stage.Start(line[0], line[1:]...) })
	}
	all.Wait()
	for _, p := range started {
		if p != nil {
			s.processes = append(s.processes, p)
		}
	}
	return started, errors.Join(faults...)
}

// start starts the topology, and the neighbours.
func (r Run) start() (*set, error) {
	s := &set{}
	if err := r.Disturbance.topology.start(r, s); err != nil {
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

// startThrift starts stores and services one after the other: each is told when it starts where those are that it calls.
func (r Run) startThrift(s *set) error {
	t, up := r.Disturbance.topology, map[string]running{}
	for _, m := range t.members() {
		p, err := r.startMember(s, m, up)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		up[m.name] = running{m, p}
	}
	ports, err := t.entries(up)
	if err != nil {
		return err
	}
	s.disturbed, s.client = up[t.Disturbed].process, r.thrift(ports)
	return nil
}

// thrift is the client of services that speak Thrift. Only fenced ones can read a deadline.
func (r Run) thrift(ports map[string]int) *load.Thrift {
	if r.Disturbance.topology.travels() && r.Arm.fenced() {
		return load.NewThriftStating(ports, r.Scale.Target)
	}
	return load.NewThrift(ports)
}

// entries are the ports at which clients ask for each path.
func (t Topology) entries(up map[string]running) (ports map[string]int, err error) {
	ports = map[string]int{}
	for _, route := range t.Routes {
		if ports[route.Path], err = up[route.First.Name].port(route.Path); err != nil {
			return nil, err
		}
	}
	return ports, nil
}

// startMember starts a store or a service; those that it calls are up.
func (r Run) startMember(s *set, m member, up map[string]running) (*stage.Process, error) {
	line, err := r.memberLine(m, up)
	if err != nil {
		return nil, err
	}
	return s.add(line[0], line[1:]...)
}

// memberLine is the command line of a store or a service.
func (r Run) memberLine(m member, up map[string]running) ([]string, error) {
	t := r.Disturbance.topology
	if m.store() {
		return append([]string{r.Node}, t.storeFlags(m.name, r.Scale)...), nil
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
	server := t.server(m, r.Scale)
	line := slices.Concat(r.program(server, r.Disturbance.full), r.Arm.service(server, ports))
	if services {
		line = append(line, r.Arm.onward()...)
	}
	if t.travels() {
		line = append(line, r.Arm.named(m.name)...)
	}
	return line, nil
}

// program is the command line of a service before its flags.
func (p Programs) program(s Server, full bool) []string {
	switch {
	case s.BesideJava:
		return []string{p.Node, "service"}
	case full && p.Full != nil:
		return p.Full
	}
	return p.Service
}

func (t Topology) storeFlags(name string, s Scale) []string {
	return []string{"downstream", "--threads", fmt.Sprint(t.threads(name, s)), "--percent", fmt.Sprint(t.percent(name))}
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
