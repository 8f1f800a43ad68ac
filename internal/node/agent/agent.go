// Package agent keeps one node's tiers in force: it follows cgroups, supervises scx_temper, and
// says at any time which rung of the fallback ladder the node is on, and why.
package agent

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"temper.dev/temper/internal/base/cgroup"
	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/node/config"
	"temper.dev/temper/internal/node/enforce"
)

// resyncEvery bounds how long a change that inotify did not tell can go unnoticed: a unit that moved
// to another slice, a controller that systemd has turned off again.
const resyncEvery = 10 * time.Second

// changeCooldown is how long after a change no further one is handled: a pod that starts makes several, and each sync costs
// as much as all pods of the node together. What must not wait asks for a sync (SyncNow).
const changeCooldown = 100 * time.Millisecond

// stopWithin is how long scx_temper may take to detach.
const stopWithin = 5 * time.Second

// Loader is a running scx_temper.
type Loader interface {
	Events() <-chan enforce.Event
	Outcome() enforce.Outcome // once Events is closed
	Signal(os.Signal) error
	PID() int
}

// Watcher tells when cgroups come and go.
type Watcher interface {
	Follow(cgs []string) (more bool, err error)
	Changed() <-chan struct{}
	Close() error
}

// Agent is the loop and what it works on. One goroutine owns all of it.
type Agent struct {
	root         host.Root
	source       Source
	log          *slog.Logger
	kernel       Kernel
	watcher      Watcher
	onState      func(State)        // nil, or told of each change of the state
	syncRequests chan chan struct{} // each is closed once the sync is done
	cooldownOver *time.Timer
	coolingDown  bool // after a change

	wanted       Wanted            // at the last sync
	loaderConfig *config.Config    // that scx_temper was started with, or would have been
	optionsCheck *optionsCheck     // of the last configuration that takes a restart; nil: check again
	cpuEnabled   map[string]uint64 // members whose cpu controller was found or turned on since the last resync, with their ids
	tiers        enforce.TierMap   // nil while scx_temper is not attached
	idle         *enforce.Idle
	cpu          *cgroup.Controllers // where the agent has turned the cpu controller on
	ladder       enforce.Ladder
	loader       Loader         // nil while scx_temper does not run
	hasAttached  bool           // this scx_temper, at some time
	ejection     *enforce.Event // the kernel's word on the exit that is under way
	restarting   bool           // scx_temper was asked to end because its options changed
	retry        *time.Timer
	state        State
	tierMapError string                // why the tier map of an attached scheduler cannot be opened
	published    atomic.Pointer[State] // the state as last written, to write only changes; nobody changes what it points to
}

// Kernel is what the agent does to the node other than through files below its root.
type Kernel struct {
	StartLoader func(args []string) (Loader, error)
	OpenTiers   func() (enforce.TierMap, error)
	Detach      func() error
	TryPins     func() error              // says cause and cure where nothing can be pinned
	CheckLoader func(args []string) error // says why scx_temper would not start
}

// New makes an agent for the node at root.
func New(root host.Root, source Source, kernel Kernel, watcher Watcher, log *slog.Logger) (*Agent, error) {
	if err := cgroup.Check(root); err != nil {
		return nil, err
	}
	idle, err := enforce.OpenIdle(root)
	if err != nil {
		return nil, err
	}
	cpu, err := cgroup.OpenControllers(root)
	if err != nil {
		return nil, err
	}
	exits, err := pastExits(root)
	if err != nil {
		log.Warn("the history of exits is lost", "error", err)
	}
	a := &Agent{root: root, source: source, log: log, kernel: kernel, watcher: watcher, idle: idle, cpu: cpu, syncRequests: make(chan chan struct{})}
	a.retry, a.cooldownOver = stoppedTimer(), stoppedTimer() // the first sync starts scx_temper
	a.state = State{PID: os.Getpid(), Started: time.Now().UTC(), Exits: exits}
	return a, nil
}

// OnState has each change of the state told, by the agent's own goroutine and once it is written. Call it before Run.
func (a *Agent) OnState(told func(State)) { a.onState = told }

// State is the agent's word as last written, for others in its process; before it has written any, that of the agent before it.
func (a *Agent) State() (*State, error) {
	if s := a.published.Load(); s != nil {
		return s, nil
	}
	return ReadState(a.root)
}

// Run is the agent's life. It ends in order when ctx does (SIGTERM, SIGINT); signals brings SIGHUP
// (read the configuration again) and SIGUSR1 (end, but leave the scheduler attached).
func (a *Agent) Run(ctx context.Context, signals <-chan os.Signal) error {
	held, err := lock(a.root)
	if err != nil {
		return err
	}
	defer held.Close()
	resync := time.NewTicker(resyncEvery)
	defer resync.Stop()

	a.setRung(enforce.Observe, "scx_temper is being started")
	a.resync()
	for {
		select {
		case <-ctx.Done():
			return a.stop()
		case signal := <-signals:
			if signal == syscall.SIGUSR1 {
				return a.handOver()
			}
			a.reload()
		case <-a.unlessCoolingDown(a.watcher.Changed()):
			a.handleChange()
		case <-a.unlessCoolingDown(a.source.Changed()):
			a.handleChange()
		case <-a.cooldownOver.C:
			a.coolingDown = false
		case done := <-a.syncRequests:
			a.sync()
			close(done)
		case <-resync.C:
			a.resync()
		case <-a.retry.C:
			a.startLoader()
		case event, running := <-a.loaderEvents():
			if running {
				a.handleEvent(event)
			} else {
				a.handleExit(a.loader.Outcome())
			}
		}
	}
}

func stoppedTimer() *time.Timer {
	t := time.NewTimer(enforce.Never)
	t.Stop()
	return t
}

// unlessCoolingDown is nil, and so never ready, during the cooldown. What changes meanwhile is told once, after it.
func (a *Agent) unlessCoolingDown(changed <-chan struct{}) <-chan struct{} {
	if a.coolingDown {
		return nil
	}
	return changed
}

// handleChange syncs at once, and ignores further changes for the cooldown.
func (a *Agent) handleChange() {
	a.sync()
	a.coolingDown = true
	a.cooldownOver.Reset(changeCooldown)
}

// loaderEvents is nil, and so never ready, while scx_temper does not run.
func (a *Agent) loaderEvents() <-chan enforce.Event {
	if a.loader == nil {
		return nil
	}
	return a.loader.Events()
}

// resync looks at what a sync takes for granted, too.
func (a *Agent) resync() {
	a.cpuEnabled, a.optionsCheck = map[string]uint64{}, nil
	a.idle.Recheck()
	a.source.Refresh()
	off, err := a.cpu.Recheck()
	for _, cg := range off {
		a.log.Warn("turned the cpu controller off again: a process came in, which made this a threaded domain", "cgroup", cg)
	}
	a.sync()
	if err != nil {
		a.problem(err.Error())
		a.publish()
	}
}

// sync brings what is in force in line with what should be: the tier map or cpu.idle, as the rung is.
func (a *Agent) sync() {
	a.openTiers()
	if a.tiers == nil {
		a.updateWanted()
	} else if changes, err := enforce.Sync(a.tiers, a.updateWanted); err != nil {
		a.updateWanted() // the map may have failed before it was asked what should be in it
		a.problem(err.Error())
	} else if changes > 0 {
		a.log.Info("tier map written", "changes", changes)
	}
	if reserved := a.wanted.Config.Reservation; a.tiers != nil && reserved != nil {
		a.tiers.Reserve(uint64(*reserved))
	}
	if a.state.Rung == enforce.CPUIdle {
		if err := a.idle.Set(backgroundCgroups(a.root, a.state.Members)); err != nil {
			a.problem(err.Error())
		}
		for _, p := range a.idle.Problems() {
			if !slices.Contains(a.state.Problems, p) {
				a.problem(p)
			}
		}
	}
	a.reconcileLoader()
	a.publish()
}

// openTiers opens the tier map wherever there should be one. A failure stays in Problems as long as it lasts.
func (a *Agent) openTiers() {
	a.tierMapError = ""
	if a.tiers != nil || a.state.Rung != enforce.SCX {
		return
	}
	tiers, err := a.kernel.OpenTiers()
	if err != nil {
		a.tierMapError = "the scheduler is attached, but tiers cannot be written: " + err.Error()
		return
	}
	a.tiers = tiers
}

// updateWanted asks the source what is wanted, finds out which cgroups there are, and gives the tier map that follows.
func (a *Agent) updateWanted() map[uint64]enforce.Assignment {
	a.wanted = a.source.Look()
	more, err := a.watcher.Follow(a.wanted.watchList())
	if more { // what has come there before it was watched is not going to be told
		a.wanted = a.source.Look()
	}
	if err != nil {
		a.wanted.Problems = append(a.wanted.Problems, fmt.Sprintf("cgroups are looked at every %v only: %v", resyncEvery, err))
	}
	members, problems := a.resolveMembers(a.wanted.Members)
	old := a.state.Problems
	a.state.Config, a.state.Policy, a.state.CriticalMilliCPU = a.wanted.File, a.wanted.Policy, a.wanted.CriticalMilliCPU
	a.state.Reserved = a.wanted.Config.Reservation
	a.state.Members, a.state.Problems = members, nil
	if a.state.Rung == enforce.CPUIdle {
		problems = append(problems, a.idle.Problems()...)
	}
	for _, p := range slices.Concat([]string{a.tierMapError}, a.wanted.Problems, problems) {
		if p == "" {
			continue
		}
		if !slices.Contains(old, p) { // once is loud enough
			a.log.Warn(p)
		}
		a.state.Problems = append(a.state.Problems, p)
	}
	return assignments(members)
}

func (a *Agent) problem(text string) {
	a.log.Error(text)
	a.state.Problems = append(a.state.Problems, text)
}
