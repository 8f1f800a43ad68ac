package observe

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"k8s.io/utils/cpuset"
)

const (
	idle  = 0
	batch = 7
	web   = 8
	db    = 9
	us    = time.Microsecond
)

var twoCPUs = cpuset.New(0, 1)

// tasks of the examples: batch is background, web and db are not, and db may run on CPU 1 only.
var tasks = map[int]Task{
	batch: {Background, "spin", twoCPUs},
	web:   {Higher, "web", twoCPUs},
	db:    {Higher, "db", cpuset.New(1)},
}

func turn(at time.Duration, cpu, from, to int) Event {
	return Event{At: at, Kind: Switch, CPU: cpu, PID: from, Next: to}
}

func preempt(at time.Duration, cpu, from, to int) Event {
	return Event{At: at, Kind: Switch, CPU: cpu, PID: from, Next: to, Preempted: true}
}

func wake(at time.Duration, pid int) Event { return Event{At: at, Kind: Wake, PID: pid} }

func TestViolations(t *testing.T) {
	for _, c := range []struct {
		name   string
		events []Event
		want   []Violation
	}{
		{"until it is interrupted", []Event{turn(0, 0, idle, batch), wake(10*us, web), preempt(13*us, 0, batch, web)},
			[]Violation{{0, 10 * us, 3 * us, batch, web}}},
		{"until another CPU takes the task", []Event{turn(0, 0, idle, batch), turn(0, 1, 99, 99), wake(10*us, web), turn(12*us, 1, 99, web)},
			[]Violation{{0, 10 * us, 2 * us, batch, web}}},
		{"to the end", []Event{turn(0, 0, idle, batch), wake(10*us, web)},
			[]Violation{{0, 10 * us, 90 * us, batch, web}}},
		{"not where it may not run", []Event{turn(0, 0, idle, batch), wake(10*us, db), turn(20*us, 1, 99, db)}, nil},
		{"not once it sleeps", []Event{turn(0, 0, batch, batch), turn(0, 1, idle, web), turn(10*us, 1, web, idle)}, nil},
		{"waits since the start, and runs since the start", []Event{preempt(5*us, 0, batch, web)},
			[]Violation{{0, 0, 5 * us, batch, web}}},
		{"a preempted task waits", []Event{turn(0, 0, idle, web), preempt(4*us, 0, web, batch), preempt(6*us, 0, batch, web)},
			[]Violation{{0, 4 * us, 2 * us, batch, web}}},
		{"one that runs and is woken does not wait", []Event{turn(0, 0, idle, batch), turn(0, 1, idle, web), wake(5*us, web), turn(9*us, 1, web, idle)}, nil},
		{"of others no one cares", []Event{turn(0, 0, idle, 99), wake(5*us, web), wake(6*us, 98)}, nil},
		{"no length, no violation", []Event{turn(0, 0, idle, batch), wake(5*us, web), turn(5*us, 0, batch, web)}, nil},
	} {
		if c.events[0].At != 0 {
			c.events = append([]Event{wake(0, 99)}, c.events...)
		}
		got, _, _ := Violations(Trace{End: 100 * us, Events: c.events}, tasks)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestUse(t *testing.T) {
	const other = 6 // another background task
	both := map[int]Task{batch: tasks[batch], other: {Background, "spin", cpuset.New(0)}, web: tasks[web], db: tasks[db]}
	for _, c := range []struct {
		name   string
		events []Event
		want   Use
	}{
		{"each has its time", []Event{turn(0, 0, idle, batch), turn(0, 1, idle, web), turn(40*us, 1, web, idle)},
			Use{Higher: 40 * us, Background: 100 * us}},
		{"an idle CPU beside a waiting task", []Event{turn(0, 0, idle, web), turn(0, 1, 99, idle), wake(10*us, batch), turn(30*us, 1, idle, batch)},
			Use{Higher: 100 * us, Background: 70 * us, Stranded: 20 * us}},
		{"a task idles one CPU at most", []Event{turn(0, 0, 99, idle), turn(0, 1, 99, idle), wake(10*us, batch), turn(30*us, 1, idle, batch)},
			Use{Background: 70 * us, Stranded: 20 * us}},
		{"not where it may not run", []Event{turn(0, 0, idle, web), turn(0, 1, 99, idle), wake(10*us, other)},
			Use{Higher: 100 * us}},
		{"higher tasks that wait strand nothing", []Event{turn(0, 0, 99, idle), turn(0, 1, idle, web), wake(10*us, db)},
			Use{Higher: 100 * us}},
		{"others are nobody", []Event{turn(0, 0, 99, 98), wake(10*us, batch)}, Use{}},
	} {
		if _, got, _ := Violations(Trace{End: 100 * us, Events: c.events}, both); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestShares(t *testing.T) {
	if r := (Report{}); r.Harvest() != 1 || r.Overlap() != 0 {
		t.Errorf("nothing happened: %v, %v", r.Harvest(), r.Overlap())
	}
	if r := (Report{HigherUS: 2000, BackgroundUS: 300, StrandedUS: 100, TotalUS: 4, ExcessUS: 1}); r.Harvest() != 0.75 || r.Overlap() != 0.002 || r.Excess() != 0.0005 {
		t.Errorf("%v, %v", r.Harvest(), r.Overlap())
	}
}

func TestUnknownTasksAreNamed(t *testing.T) {
	events := []Event{turn(0, 0, idle, 5), wake(1, 3), turn(2, 0, 5, web)}
	if _, _, unknown := Violations(Trace{End: 10, Events: events}, tasks); !slices.Equal(unknown, []int{3, 5}) {
		t.Error(unknown)
	}
}

func TestReport(t *testing.T) {
	var events []Event
	for i := range 100 {
		at := time.Duration(i) * 100 * us
		length := us
		if i == 99 {
			length = 50 * us
		}
		events = append(events, turn(at, 0, idle, batch), wake(at+us, web), preempt(at+us+length, 0, batch, web), turn(at+us+length, 0, web, idle))
	}
	r := Summarize(Trace{End: 10_000 * us, Events: events}, tasks, 10*us)
	if r.Violations != 100 || r.TotalUS != 149 || r.ExcessUS != 40 || r.P50US != 1 || r.P99US != 1 || r.P999US != 50 || r.MaxUS != 50 || r.Seconds != 0.01 || r.Events != 400 {
		t.Errorf("%+v", r)
	}
	if r.Histogram[1] != 99 || r.Histogram[6] != 1 {
		t.Errorf("%v", r.Histogram)
	}
	want := Longest{AtSeconds: 0.009901, CPU: 0, US: 50, Background: fmt.Sprintf("spin[%d]", batch), Waiting: fmt.Sprintf("web[%d]", web)}
	if r.Longest == nil || *r.Longest != want {
		t.Errorf("the longest is %+v, want %+v", r.Longest, want)
	}
}

// The oracle looks at each moment of a random trace by itself, and asks of each task what the events
// up to then, or else those after, say of it.
func TestViolationsAgreeWithBruteForce(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	found := 0
	for range 2000 {
		trace, tasks := randomTrace(r)
		want := bruteForce(trace, tasks)
		got, _, _ := Violations(trace, tasks)
		slices.SortFunc(got, func(a, b Violation) int {
			if a.CPU != b.CPU {
				return a.CPU - b.CPU
			}
			return int(a.Start - b.Start)
		})
		for i := range got {
			got[i].Background, got[i].Waiting = 0, 0
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%+v\nwant %+v\ntrace %+v\ntasks %+v", got, want, trace, tasks)
		}
		found += len(want)
	}
	if found < 1000 {
		t.Errorf("only %d violations in all traces: the traces test little", found)
	}
}

// randomTrace plays a machine that schedules at random, and drops what happened before the recording.
func randomTrace(r *rand.Rand) (Trace, map[int]Task) {
	cpus, pids := 1+r.IntN(3), 1+r.IntN(5)
	tasks := map[int]Task{}
	for pid := 1; pid <= pids; pid++ {
		var allowed []int
		for cpu := range cpus {
			if r.IntN(2) == 0 {
				allowed = append(allowed, cpu)
			}
		}
		tasks[pid] = Task{Role: Role(r.IntN(3)), CPUs: cpuset.New(allowed...)}
	}
	running, waiting := make([]int, cpus), map[int]bool{}
	var all []Event
	var now time.Duration
	for range 60 {
		now += time.Duration(r.IntN(3))
		if r.IntN(2) == 0 {
			pid := 1 + r.IntN(pids)
			all = append(all, wake(now, pid))
			if !slices.Contains(running, pid) {
				waiting[pid] = true
			}
			continue
		}
		cpu := r.IntN(cpus)
		next := idle
		for pid := range pids {
			if waiting[pid+1] && r.IntN(2) == 0 {
				next = pid + 1
			}
		}
		e := turn(now, cpu, running[cpu], next)
		if e.PID == e.Next {
			continue
		}
		delete(waiting, next)
		if e.PID != idle && r.IntN(2) == 0 {
			e.Preempted = true
			waiting[e.PID] = true
		}
		running[cpu] = next
		all = append(all, e)
	}
	kept := all[r.IntN(10):]
	return Trace{Start: kept[0].At, End: now + 2, Events: kept}, tasks
}

func bruteForce(trace Trace, tasks map[int]Task) (list []Violation) {
	for cpu := range 3 {
		var open *Violation
		for now := trace.Start; now <= trace.End; now++ {
			violated := now < trace.End && isViolated(trace, tasks, cpu, now)
			switch {
			case violated && open == nil:
				open = &Violation{CPU: cpu, Start: now}
			case !violated && open != nil:
				open.Length = now - open.Start
				list = append(list, *open)
				open = nil
			}
		}
	}
	return list
}

func isViolated(trace Trace, tasks map[int]Task, cpu int, now time.Duration) bool {
	if tasks[runningAt(trace, cpu, now)].Role != Background {
		return false
	}
	for pid, task := range tasks {
		if task.Role == Higher && task.CPUs.Contains(cpu) && waitsAt(trace, pid, now) {
			return true
		}
	}
	return false
}

// runningAt is the task of the last switch on the CPU, or who leaves at the first one to come.
func runningAt(trace Trace, cpu int, now time.Duration) int {
	for _, e := range slices.Backward(trace.Events) {
		if e.Kind == Switch && e.CPU == cpu && e.At <= now {
			return e.Next
		}
	}
	for _, e := range trace.Events {
		if e.Kind == Switch && e.CPU == cpu {
			return e.PID
		}
	}
	return idle
}

// waitsAt reads a task's own events backwards; a wake-up counts unless the task was running.
func waitsAt(trace Trace, pid int, now time.Duration) bool {
	for i, e := range slices.Backward(trace.Events) {
		switch {
		case e.At > now:
		case e.Kind == Switch && e.Next == pid:
			return false
		case e.Kind == Switch && e.PID == pid:
			return e.Preempted
		case e.Kind == Wake && e.PID == pid && !runsBefore(trace, pid, i):
			return true
		}
	}
	// Nothing yet: it waits if what comes first is that it gets a CPU.
	for _, e := range trace.Events {
		switch {
		case e.Kind == Switch && e.Next == pid:
			return true
		case e.PID == pid:
			return false
		}
	}
	return false
}

// runsBefore tells whether the task ran when event i came.
func runsBefore(trace Trace, pid, i int) bool {
	for _, e := range slices.Backward(trace.Events[:i]) {
		if e.Kind == Switch && e.Next == pid {
			return true
		}
		if e.Kind == Switch && e.PID == pid {
			return false
		}
	}
	for _, e := range trace.Events[i:] {
		if e.Kind == Switch && e.Next == pid {
			return false
		}
		if e.Kind == Switch && e.PID == pid {
			return true
		}
	}
	return false
}
