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

// startLoader starts scx_temper. Whether it attaches, its events tell.
func (a *Agent) startLoader() {
	a.state.RetryAt = nil
	loader, err := a.kernel.StartLoader(enforce.Args(a.loaderConfig, a.root.Pins()))
	if err != nil {
		a.handleExit(enforce.Outcome{Status: exit.Failed, Text: err.Error()})
		return
	}
	a.loader, a.hasAttached = loader, false
	a.state.Loader = loader.PID()
	a.publish()
}

// handleEvent takes one event of a running scx_temper.
func (a *Agent) handleEvent(event enforce.Event) {
	switch event.Event {
	case enforce.EventAttached:
		a.handleAttached(event)
	case enforce.EventExited:
		a.ejection = &event
		a.log.Error("the kernel has thrown the scheduler out", "kind", event.Kind, "reason", event.Reason, "message", event.Message)
	}
	// An error is part of the outcome that follows it.
}

// handleAttached climbs to the top rung: first the tiers, then away with what stood in for them.
func (a *Agent) handleAttached(event enforce.Event) {
	a.hasAttached = true
	a.ladder.Attached(time.Now())
	a.closeTiers() // an adopted scheduler has the same maps, a new one others
	reason := "scx_temper has attached"
	if event.Adopted {
		reason = "scx_temper has adopted the scheduler that was attached"
	}
	a.setRung(enforce.SCX, reason)
	a.sync()
	if err := errors.Join(a.idle.Restore(), a.idle.Clear(runCgroups(a.state.Members))); err != nil {
		a.problem(err.Error())
		a.publish()
	}
}

// handleExit restarts scx_temper as the ladder says, and moves the node to the rung that is in force meanwhile.
func (a *Agent) handleExit(outcome enforce.Outcome) {
	now := time.Now()
	a.loader, a.state.Loader = nil, 0
	if a.restarting {
		a.restarting, a.ejection = false, nil
		a.closeTiers()
		a.setRung(enforce.Observe, "scx_temper is being started with other options")
		a.scheduleRetry(now, 0)
		return
	}
	outcome.Text = a.explainExit(outcome)
	stalled := a.ejection != nil && a.ejection.Kind == enforce.KindStall
	a.recordExit(now, outcome)
	var step enforce.Step
	if stalled {
		step = a.ladder.Stalled(now)
	} else {
		step = a.ladder.Failed(now, outcome.Status)
	}
	a.state.Failures = a.ladder.Failures(now)
	if step.Fall {
		a.fallBack(outcome.Text)
	} else {
		a.setRungUntilRestart(outcome.Text)
	}
	a.scheduleRetry(now, step.Retry)
	a.sync()
}

// explainExit is how scx_temper ended, with cause and cure where it could not pin anything: it knows no more than that it was
// refused.
func (a *Agent) explainExit(outcome enforce.Outcome) string {
	if outcome.Status != exit.LoadFailed || a.hasAttached {
		return outcome.Text
	}
	if err := a.kernel.TryPins(); err != nil {
		return fmt.Sprintf("scx_temper left with status %d: %v", outcome.Status, err)
	}
	return outcome.Text
}

// recordExit keeps the exit for the history, with the kernel's own reason where there is one.
func (a *Agent) recordExit(now time.Time, outcome enforce.Outcome) {
	e := Exit{Time: now.UTC(), Status: outcome.Status, Text: outcome.Text}
	if a.ejection != nil {
		e.Kind, e.ExitCode, e.Reason, e.Message = a.ejection.Kind, a.ejection.ExitCode, a.ejection.Reason, a.ejection.Message
	}
	a.ejection = nil
	a.state.addExit(e, !a.hasAttached)
	a.log.Error(outcome.Text)
}

// setRungUntilRestart tells the truth for the moments until scx_temper is back: a killed loader leaves its pinned
// scheduler in force, an ejected scheduler leaves nothing.
func (a *Agent) setRungUntilRestart(why string) {
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

// fallBack leaves the top rung, and makes sure that nothing of it is left.
func (a *Agent) fallBack(why string) {
	a.closeTiers()
	if err := a.kernel.Detach(); err != nil {
		a.problem(err.Error())
	}
	if a.wanted.Config.Fallback == config.FallbackNone {
		a.setRung(enforce.Observe, why)
		return
	}
	if !a.idle.Supported(backgroundCgroups(a.root, a.state.Members)) {
		a.setRung(enforce.Observe, why+"; cpu.idle is not to be had here (it needs Linux 5.15 and the cpu controller)")
		return
	}
	a.setRung(enforce.CPUIdle, why)
}

// scheduleRetry sets when scx_temper is started next, if ever.
func (a *Agent) scheduleRetry(now time.Time, after time.Duration) {
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

// reconcileLoader brings scx_temper itself in line with what is wanted: it is stopped, started, or restarted with other
// options. Where it does not run, another configuration resets its failures.
func (a *Agent) reconcileLoader() {
	off, cfg := a.wanted.Off, a.wanted.Config
	switch {
	case off != nil:
		a.turnOff(off)
	case a.state.Off == nil && a.loaderConfig != nil && !enforce.NeedsRestart(a.loaderConfig, cfg):
		a.loaderConfig = cfg // what is reserved by now is what the next one begins with
	case a.loader == nil:
		if a.state.Off != nil {
			a.log.Info("safe mode has ended")
			a.setRung(a.state.Rung, "safe mode has ended; scx_temper is being started")
		}
		a.state.Off, a.loaderConfig = nil, cfg
		a.resetFailuresAndStart()
	case a.rejectsOptions(cfg):
	case !a.restarting:
		a.loaderConfig, a.restarting = cfg, true
		a.signalLoader(syscall.SIGTERM)
	}
}

// optionsCheck says whether scx_temper would start with a configuration's options.
type optionsCheck struct {
	cfg     *config.Config
	problem string // "": it would
}

// rejectsOptions tells whether scx_temper would not start with other options. Then those that it runs with stay, as a problem.
// It is asked again when they change, and after each resync.
func (a *Agent) rejectsOptions(cfg *config.Config) bool {
	if a.optionsCheck == nil || enforce.NeedsRestart(a.optionsCheck.cfg, cfg) {
		a.optionsCheck = &optionsCheck{cfg: cfg}
		if err := a.kernel.CheckLoader(enforce.Args(cfg, a.root.Pins())); err != nil {
			a.optionsCheck.problem = "scx_temper keeps the options that it has, since it would not start with those of the configuration: " + err.Error()
			a.log.Error(a.optionsCheck.problem)
		}
	}
	if a.optionsCheck.problem == "" {
		return false
	}
	a.state.Problems = append(a.state.Problems, a.optionsCheck.problem)
	return true
}

// turnOff leaves the node to the kernel's own scheduler, and sees to it again as long as that is asked for.
func (a *Agent) turnOff(off *Off) {
	s, err := a.root.Scheduler()
	if known := a.state.Off != nil; !known || err != nil || s.IsTemper() || len(a.idle.Cgroups()) > 0 {
		if err := a.restoreNode(); err != nil {
			a.problem(err.Error())
		}
	}
	if a.state.Off == nil {
		a.log.Warn(off.Message)
	}
	a.state.Off = off
	a.setRung(enforce.Observe, off.Message)
}

// resetFailuresAndStart starts scx_temper at once, with a ladder that knows of no failure.
func (a *Agent) resetFailuresAndStart() {
	a.ladder, a.state.Failures = enforce.Ladder{}, 0
	a.scheduleRetry(time.Now(), 0)
}

// reload reads the configuration again. A bad one changes nothing. A good one gives scx_temper a new chance.
func (a *Agent) reload() {
	err := a.source.Reload()
	a.resync()
	if err == nil && a.loader == nil && a.state.Off == nil {
		a.resetFailuresAndStart()
	}
}

// restoreNode undoes what the agent has changed on the node.
func (a *Agent) restoreNode() error {
	err := errors.Join(a.stopLoader(syscall.SIGTERM), a.kernel.Detach(), a.idle.Restore())
	kept, cpuErr := a.cpu.Disable()
	clear(a.cpuEnabled)
	for _, cg := range kept {
		a.log.Info("left the cpu controller on: something in it has a weight or a limit", "cgroup", cg)
	}
	return errors.Join(err, cpuErr)
}

// stop leaves the node as it was before the agent came.
func (a *Agent) stop() error {
	err := a.restoreNode()
	a.state.PID = 0
	a.setRung(enforce.Observe, "the agent was stopped")
	a.publish()
	return err
}

// handOver ends the agent and leaves everything in force for the next one.
func (a *Agent) handOver() error {
	err := a.stopLoader(syscall.SIGUSR1)
	a.state.PID = 0
	a.setRung(a.state.Rung, "the agent has handed over to the next")
	a.publish()
	return err
}

// stopLoader sends scx_temper a signal and waits until it has ended.
func (a *Agent) stopLoader(signal os.Signal) error {
	a.retry.Stop()
	a.closeTiers()
	a.state.RetryAt = nil
	a.restarting, a.ejection = false, nil // this end answers whatever was under way
	if a.loader == nil {
		return nil
	}
	a.signalLoader(signal)
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
			a.signalLoader(syscall.SIGKILL)
		}
	}
}

func (a *Agent) signalLoader(signal os.Signal) {
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

// setRung is loud about a change: a warning, but where it is for the better, or the agent's first rung.
func (a *Agent) setRung(rung enforce.Rung, reason string) {
	if rung != a.state.Rung {
		a.state.Since = time.Now().UTC()
		level := a.log.Warn
		if rung == enforce.SCX || a.state.Rung == "" {
			level = a.log.Info
		}
		level("rung "+string(rung), "why", reason)
	}
	a.state.Rung, a.state.Reason = rung, reason
}

// publish writes the state for others, if it has changed.
func (a *Agent) publish() {
	if before := a.published.Load(); before != nil && a.state.equal(*before) {
		return
	}
	now := a.state.clone()
	a.published.Store(&now)
	if err := host.WriteJSON(a.root.Run(StateFile), now); err != nil {
		a.log.Error("cannot write the state", "error", err)
	}
	if a.onState != nil {
		a.onState(now)
	}
}
