// Package observe checks from outside, by the kernel's own tracepoints, that no background task runs
// on a CPU where a waiting task of a higher tier may run. It works under any scheduler and trusts
// none: neither its counters nor its idea of a task's tier.
package observe

import (
	"slices"
	"time"

	"k8s.io/utils/cpuset"
)

// Kind is what happened.
type Kind int

// Kinds of Event.
const (
	Switch Kind = iota // a CPU turns from one task to another
	Wake               // a task becomes runnable
)

// Event is one of the kernel's. Process id 0 is an idle CPU.
type Event struct {
	At   time.Duration
	Kind Kind
	CPU  int // of a Switch
	PID  int // the task that leaves the CPU, or wakes

	Next      int  // of a Switch: the task that gets the CPU
	Preempted bool // of a Switch: the task that leaves could have gone on
}

// Role is what a task is to the check.
type Role int

// Roles.
const (
	Other      Role = iota // it does not matter who waits for it, or for whom it waits
	Higher                 // of a tier above background: it must not wait for background
	Background             // it must not keep a higher one waiting
)

// Task is what has to be known of a task.
type Task struct {
	Role Role
	Name string        // of the thread; empty for role Other
	CPUs cpuset.CPUSet // where it may run
}

// Violation is a time during which a CPU ran background while it could have run a waiting task of a
// higher tier. Tasks may change meanwhile, on both sides; those named were there at the start.
type Violation struct {
	CPU                 int
	Start               time.Duration
	Length              time.Duration
	Background, Waiting int // process ids
}

// Use is who had the CPUs, as time on all of them together.
type Use struct {
	Higher, Background time.Duration
	// Stranded is time of CPUs that idled while a background task waited that may run there: work that a scheduler
	// which leaves nothing would have done. Each waiting task counts for one CPU at most.
	Stranded time.Duration
}

// Trace is what was recorded: all events in the order of time, from its start to its end.
type Trace struct {
	Start, End time.Duration
	Events     []Event
}

// Violations lists the violations in a trace, in the order in which they end; who had the CPUs; and the tasks
// of the trace that tasks does not know, which are left out.
//
// A task that neither wakes nor runs from start to end leaves no event, and is not seen to wait.
func Violations(trace Trace, tasks map[int]Task) (list []Violation, use Use, unknown []int) {
	s := begin(trace, tasks)
	at := trace.Start
	// Events of one moment count as one: the trace's clock cannot tell what was between them.
	for _, e := range trace.Events {
		if e.At > at {
			list = s.judge(list, at)
			s.account(&use, e.At-at)
			at = e.At
		}
		s.apply(e)
	}
	list = s.judge(list, at)
	s.account(&use, trace.End-at)
	for _, cpu := range s.cpus {
		if _, open := s.open[cpu]; open {
			list = s.close(list, cpu, trace.End)
		}
	}
	return list, use, s.unknown()
}

// account adds a time during which nothing changed.
func (s *state) account(use *Use, length time.Duration) {
	taken := map[int]bool{}
	for _, cpu := range s.cpus {
		switch pid := s.running[cpu]; {
		case pid == 0:
			if waiting := s.waitsFor(cpu, Background, taken); waiting != 0 {
				taken[waiting] = true
				use.Stranded += length
			}
		case s.tasks[pid].Role == Higher:
			use.Higher += length
		case s.tasks[pid].Role == Background:
			use.Background += length
		}
	}
}

// state is that of the machine at one moment.
type state struct {
	tasks   map[int]Task
	seen    map[int]bool // every process id of the trace
	cpus    []int        // every CPU of the trace, in order
	running map[int]int  // CPU: process id
	on      map[int]int  // process id: CPU
	waiting map[int]bool
	open    map[int]Violation // by CPU
}

// begin finds out from what happens later how things were at the start: who gets a CPU without having
// woken was waiting, who leaves a CPU without having got it was running.
func begin(trace Trace, tasks map[int]Task) *state {
	s := &state{
		tasks: tasks, seen: map[int]bool{}, running: map[int]int{}, on: map[int]int{}, waiting: map[int]bool{}, open: map[int]Violation{},
	}
	for _, e := range trace.Events {
		if e.Kind == Switch {
			if _, known := s.running[e.CPU]; !known {
				s.run(e.PID, e.CPU)
			}
			if !s.seen[e.Next] && e.Next != 0 {
				s.waiting[e.Next] = true
			}
			s.seen[e.Next] = true
		}
		s.seen[e.PID] = true
	}
	for cpu := range s.running {
		s.cpus = append(s.cpus, cpu)
	}
	slices.Sort(s.cpus)
	for pid := range s.on {
		delete(s.waiting, pid)
	}
	return s
}

func (s *state) run(pid, cpu int) {
	s.running[cpu] = pid
	if pid != 0 {
		s.on[pid] = cpu
	}
	delete(s.waiting, pid)
}

func (s *state) apply(e Event) {
	switch e.Kind {
	case Switch:
		delete(s.on, e.PID)
		if e.Preempted && e.PID != 0 {
			s.waiting[e.PID] = true
		}
		s.run(e.Next, e.CPU)
	case Wake:
		// One that is about to sleep, and still runs, is woken too.
		if _, runs := s.on[e.PID]; !runs {
			s.waiting[e.PID] = true
		}
	}
}

// judge opens and closes violations by the state that holds from now on.
func (s *state) judge(list []Violation, now time.Duration) []Violation {
	for _, cpu := range s.cpus {
		pid := s.running[cpu]
		kept := s.keptBy(pid, cpu)
		_, open := s.open[cpu]
		switch {
		case kept != 0 && !open:
			s.open[cpu] = Violation{CPU: cpu, Start: now, Background: pid, Waiting: kept}
		case kept == 0 && open:
			list = s.close(list, cpu, now)
		}
	}
	return list
}

// keptBy is a task that a CPU keeps waiting by what it runs; 0 for none.
func (s *state) keptBy(pid, cpu int) int {
	if s.tasks[pid].Role != Background {
		return 0
	}
	return s.waitsFor(cpu, Higher, nil)
}

// waitsFor is a task of a role that waits and may run on a CPU, and that is not left out; 0 for none. Of several,
// the lowest id, so that equal traces give equal reports.
func (s *state) waitsFor(cpu int, role Role, without map[int]bool) int {
	first := 0
	for pid := range s.waiting {
		if t := s.tasks[pid]; t.Role == role && !without[pid] && t.CPUs.Contains(cpu) && (first == 0 || pid < first) {
			first = pid
		}
	}
	return first
}

func (s *state) close(list []Violation, cpu int, now time.Duration) []Violation {
	v := s.open[cpu]
	delete(s.open, cpu)
	v.Length = now - v.Start
	return append(list, v)
}

func (s *state) unknown() (list []int) {
	for pid := range s.seen {
		if _, known := s.tasks[pid]; !known && pid != 0 {
			list = append(list, pid)
		}
	}
	slices.Sort(list)
	return list
}
