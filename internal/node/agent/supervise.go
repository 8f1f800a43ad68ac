package agent

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/node/config"
	"temper.dev/temper/internal/node/enforce"
)

// start starts scx_temper. Whether it attaches, its events tell.
func (a *Agent) start() {
	a.state.RetryAt = nil
	loader, err := a.kernel.Start(enforce.Args(a.started, a.root.Pins()))
	if err != nil {
		a.gone(enforce.Outcome{Status: exit.Failed, Text: err.Error()})
		return
	}
	a.loader, a.was = loader, false
	a.state.Loader = loader.PID()
	a.publish()
}

// heard takes one event of scx_temper.
func (a *Agent) heard(event enforce.Event) {
	switch event.Event {
	case enforce.EventAttached:
		a.attached(event)
	case enforce.EventExited:
		a.ejected = &event
		a.log.Error("the kernel has thrown the scheduler out", "kind", event.Kind, "reason", event.Reason, "message", event.Message)
	}
	// An error is part of the outcome that follows it.
}

// attached climbs to the top rung: first the tiers, then away with what stood in for them.
func (a *Agent) attached(event enforce.Event) {
	a.was = true
	a.ladder.Attached(time.Now())
	a.closeTiers() // an adopted scheduler has the same maps, a new one others
	reason := "scx_temper has attached"
	if event.Adopted {
		reason = "scx_temper has adopted the scheduler that was attached"
	}
	a.setRung(enforce.SCX, reason)
	a.sync()
	if err := errors.Join(a.idle.Restore(), a.idle.Clear(runs(a.state.Members))); err != nil {
		a.problem(err.Error())
		a.publish()
	}
}

// gone answers the end of scx_temper.
func (a *Agent) gone(outcome enforce.Outcome) {
	now := time.Now()
	a.loader, a.state.Loader = nil, 0
	if a.renew {
		a.renew, a.ejected = false, nil
		a.closeTiers()
		a.setRung(enforce.Observe, "scx_temper is being started with other options")
		a.again(now, 0)
		return
	}
	outcome.Text = a.explained(outcome)
	stalled := a.ejected != nil && a.ejected.Kind == enforce.KindStall
	a.remember(now, outcome)
	var step enforce.Step
	if stalled {
		step = a.ladder.Stalled(now)
	} else {
		step = a.ladder.Failed(now, outcome.Status)
	}
	a.state.Failures = a.ladder.Failures(now)
	if step.Fall {
		a.fall(outcome.Text)
	} else {
		a.hold(outcome.Text)
	}
	a.again(now, step.Retry)
	a.sync()
}

// explained is how scx_temper ended, with cause and cure where it could not pin anything: it knows no more than that it was
// refused.
func (a *Agent) explained(outcome enforce.Outcome) string {
	if outcome.Status != exit.LoadFailed || a.was {
		return outcome.Text
	}
	if err := a.kernel.TryPins(); err != nil {
		return fmt.Sprintf("scx_temper left with status %d: %v", outcome.Status, err)
	}
	return outcome.Text
}

// remember keeps the exit for the history, with the kernel's own reason where there is one.
func (a *Agent) remember(now time.Time, outcome enforce.Outcome) {
	e := Exit{Time: now.UTC(), Status: outcome.Status, Text: outcome.Text}
	if a.ejected != nil {
		e.Kind, e.ExitCode, e.Reason, e.Message = a.ejected.Kind, a.ejected.ExitCode, a.ejected.Reason, a.ejected.Message
	}
	a.ejected = nil
	a.state.addExit(e, !a.was)
	a.log.Error(outcome.Text)
}

// hold tells the truth for the moments until scx_temper is back: a killed loader leaves its pinned
// scheduler in force, an ejected scheduler leaves nothing.
func (a *Agent) hold(why string) {
	if a.state.Rung == enforce.CPUIdle { // an attempt to climb: nothing was left yet
		return
	}
	if s, err := a.root.Scheduler(); err == nil && s.IsTemper() {
		a.setRung(enforce.SCX, why+"; the scheduler stays attached meanwhile")
		return
	}
	a.closeTiers()
	a.setRung(enforce.Observe, why+"; it is being started again")
}

// fall leaves the top rung, and makes sure that nothing of it is left.
func (a *Agent) fall(why string) {
	a.closeTiers()
	if err := a.kernel.Detach(); err != nil {
		a.problem(err.Error())
	}
	if a.wanted.Config.Fallback == config.FallbackNone {
		a.setRung(enforce.Observe, why)
		return
	}
	if !a.idle.Supported(background(a.root, a.state.Members)) {
		a.setRung(enforce.Observe, why+"; cpu.idle is not to be had here (it needs Linux 5.15 and the cpu controller)")
		return
	}
	a.setRung(enforce.CPUIdle, why)
}

// again plans the next start of scx_temper.
func (a *Agent) again(now time.Time, after time.Duration) {
	a.state.RetryAt = nil
	a.retry.Stop()
	if after == enforce.Never {
		a.log.Warn("scx_temper is not tried again before the configuration is reloaded or the agent restarted")
		return
	}
	at := now.Add(after).UTC()
	a.state.RetryAt = &at
	a.retry.Reset(after)
}

// steer follows what the last look asks of scx_temper itself: to leave the node alone, to come back, or to
// be started with other options. Where it does not run, what was changed gives it a new chance.
func (a *Agent) steer() {
	off, cfg := a.wanted.Off, a.wanted.Config
	switch {
	case off != nil:
		a.leave(off)
	case a.state.Off == nil && a.started != nil && enforce.Alike(cfg, a.started):
		a.started = cfg // what is reserved by now is what the next one begins with
	case a.loader == nil:
		if a.state.Off != nil {
			a.log.Info("safe mode has ended")
			a.setRung(a.state.Rung, "safe mode has ended; scx_temper is being started")
		}
		a.state.Off, a.started = nil, cfg
		a.chance()
	case a.refuses(cfg):
	case !a.renew:
		a.started, a.renew = cfg, true
		a.signal(syscall.SIGTERM)
	}
}

// refusal is why scx_temper would not start for a configuration; "": it would.
type refusal struct {
	cfg *config.Config
	why string
}

// refuses tells whether scx_temper, which runs, would not start with other options: then those that it has stay, as a problem.
// It is asked once, and once a minute again.
func (a *Agent) refuses(cfg *config.Config) bool {
	if a.refused == nil || !enforce.Alike(cfg, a.refused.cfg) {
		a.refused = &refusal{cfg: cfg}
		if err := a.kernel.Check(enforce.Args(cfg, a.root.Pins())); err != nil {
			a.refused.why = "scx_temper keeps the options that it has, since it would not start with those of the configuration: " + err.Error()
			a.log.Error(a.refused.why)
		}
	}
	if a.refused.why == "" {
		return false
	}
	a.state.Problems = append(a.state.Problems, a.refused.why)
	return true
}

// leave leaves the node to the kernel's own scheduler, and sees to it again as long as that is asked for.
func (a *Agent) leave(off *Off) {
	s, err := a.root.Scheduler()
	if known := a.state.Off != nil; !known || err != nil || s.IsTemper() || len(a.idle.Cgroups()) > 0 {
		if err := a.release(); err != nil {
			a.problem(err.Error())
		}
	}
	if a.state.Off == nil {
		a.log.Warn(off.Message)
	}
	a.state.Off = off
	a.setRung(enforce.Observe, off.Message)
}

// chance starts scx_temper, and forgets that it failed.
func (a *Agent) chance() {
	a.ladder, a.state.Failures = enforce.Ladder{}, 0
	a.again(time.Now(), 0)
}

// reload reads the configuration again. A bad one changes nothing. A good one gives scx_temper a new chance.
func (a *Agent) reload() {
	err := a.source.Reload()
	a.resync()
	if err == nil && a.loader == nil && a.state.Off == nil {
		a.chance()
	}
}

// release ends what the agent has put into force.
func (a *Agent) release() error {
	err := errors.Join(a.end(syscall.SIGTERM), a.kernel.Detach(), a.idle.Restore())
	kept, cpuErr := a.cpu.Disable()
	clear(a.checked)
	for _, cg := range kept {
		a.log.Info("left the cpu controller on: something in it has a weight or a limit", "cgroup", cg)
	}
	return errors.Join(err, cpuErr)
}

// stop leaves the node as it was before the agent came.
func (a *Agent) stop() error {
	err := a.release()
	a.state.PID = 0
	a.setRung(enforce.Observe, "the agent was stopped")
	a.publish()
	return err
}

// handOver ends the agent and leaves everything in force for the next one.
func (a *Agent) handOver() error {
	err := a.end(syscall.SIGUSR1)
	a.state.PID = 0
	a.setRung(a.state.Rung, "the agent has handed over to the next")
	a.publish()
	return err
}

// end sends scx_temper a signal and waits until it is gone.
func (a *Agent) end(signal os.Signal) error {
	a.retry.Stop()
	a.closeTiers()
	a.state.RetryAt = nil
	a.renew, a.ejected = false, nil // this end answers whatever was under way
	if a.loader == nil {
		return nil
	}
	a.signal(signal)
	timeout := time.NewTimer(stopWithin)
	defer timeout.Stop()
	for {
		select {
		case _, running := <-a.loader.Events():
			if !running {
				a.loader, a.state.Loader = nil, 0
				return nil
			}
		case <-timeout.C:
			a.log.Error("scx_temper does not end and is killed", "signal", signal)
			a.signal(syscall.SIGKILL)
		}
	}
}

func (a *Agent) signal(signal os.Signal) {
	if err := a.loader.Signal(signal); err != nil {
		a.problem("cannot signal scx_temper: " + err.Error())
	}
}

func (a *Agent) closeTiers() {
	if a.tiers != nil {
		a.tiers.Close()
		a.tiers = nil
	}
}

// setRung is loud about a change.
func (a *Agent) setRung(rung enforce.Rung, reason string) {
	if rung != a.state.Rung {
		a.state.Since = time.Now().UTC()
		level := a.log.Warn
		if rung == enforce.SCX {
			level = a.log.Info
		}
		level("rung "+string(rung), "why", reason)
	}
	a.state.Rung, a.state.Reason = rung, reason
}

// publish writes the state for others, if it has changed.
func (a *Agent) publish() {
	if before := a.written.Load(); before != nil && a.state.equal(*before) {
		return
	}
	now := a.state.clone()
	a.written.Store(&now)
	if err := host.WriteJSON(a.root.Run(StateFile), now); err != nil {
		a.log.Error("cannot write the state", "error", err)
	}
	if a.onState != nil {
		a.onState(now)
	}
}
