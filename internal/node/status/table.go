package status

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/node/config"
	"temper.dev/temper/internal/node/enforce"
)

// Style paints words; the zero value paints nothing.
type Style struct{ Color bool }

// Good, Warn and Bad are green, yellow and red on a terminal.
func (s Style) Good(text string) string { return s.paint("32", text) }

// Warn is yellow on a terminal.
func (s Style) Warn(text string) string { return s.paint("33", text) }

// Bad is red on a terminal.
func (s Style) Bad(text string) string { return s.paint("31", text) }

func (s Style) paint(code, text string) string {
	if !s.Color {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Write shows a status to a person.
func (s *Status) Write(w io.Writer, style Style) {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	s.writeHead(out, style)
	out.Flush()
	if len(s.Tiers) > 0 {
		fmt.Fprintln(w)
		s.writeTiers(out)
		out.Flush()
		fmt.Fprintf(w, "\nGap (background ran on while a higher tier waited): p50 %s, p99 %s, %d rechecks\n",
			host.Below(s.Gap.P50US), host.Below(s.Gap.P99US), s.Gap.Rechecks)
		if s.Gap.LoanBackP99US > 0 {
			fmt.Fprintf(w, "Loans given back (background ran on after its place had been called in): p50 %s, p99 %s\n",
				host.Below(s.Gap.LoanBackP50US), host.Below(s.Gap.LoanBackP99US))
		}
	}
	if len(s.Waits) > 0 {
		fmt.Fprintln(w)
		s.writeWaits(out)
		out.Flush()
	}
	if len(s.Limits) > 0 {
		fmt.Fprintln(w)
		s.writeLimits(out)
		out.Flush()
	}
	if len(s.RealTime) > 0 {
		fmt.Fprintln(w)
		s.writeRealTime(out)
		out.Flush()
	}
	if len(s.Cgroups) > 0 {
		fmt.Fprintln(w)
		s.writeCgroups(out)
		out.Flush()
	}
	if len(s.Exits) > 0 {
		fmt.Fprintln(w)
		s.writeExits(out)
		out.Flush()
	}
	for i, p := range s.Problems {
		if i == 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintln(w, style.Warn("problem:"), p)
	}
}

func (s *Status) writeHead(w io.Writer, style Style) {
	rung := style.Bad(string(s.Rung))
	switch s.Rung {
	case enforce.SCX:
		rung = style.Good(string(s.Rung))
	case enforce.CPUIdle:
		rung = style.Warn(string(s.Rung))
	}
	fmt.Fprintf(w, "rung\t%s\n", rung)
	fmt.Fprintf(w, "why\t%s\n", s.Reason)
	if s.Since != nil {
		fmt.Fprintf(w, "since\t%s\n", stamp(*s.Since))
	}
	switch {
	case s.Scheduler.State == "":
		fmt.Fprintf(w, "kernel\tno sched_ext\n")
	default:
		ops := s.Scheduler.Ops
		if ops == "" {
			ops = "none"
		}
		fmt.Fprintf(w, "kernel\tstate %s, scheduler %s, enable_seq %d, nr_rejected %d\n", s.Scheduler.State, ops, s.Scheduler.EnableSeq, s.Scheduler.NrRejected)
	}
	if s.Agent.Running {
		fmt.Fprintf(w, "agent\tprocess %d, %s\n", s.Agent.PID, s.Agent.Config)
	} else {
		fmt.Fprintf(w, "agent\tnot running\n")
	}
	if s.Agent.RetryAt != nil {
		fmt.Fprintf(w, "next attempt\t%s\n", stamp(*s.Agent.RetryAt))
	}
	if s.Loader != nil && s.Enforced {
		fmt.Fprintf(w, "scx_temper\tprocess %d, heartbeat %.1f s ago (the scheduler leaves after %s)\n", s.Loader.PID, s.Loader.HeartbeatAgeS, timeout(s.Loader.HeartbeatTimeoutS))
		switch {
		case s.Loader.ReservationCPUs > 0:
			fmt.Fprintf(w, "reservation\tcritical comes first up to %g CPUs; it was over that %d times\n", s.Loader.ReservationCPUs, s.Gap.CriticalOver)
		case s.Loader.Reserves:
			fmt.Fprintf(w, "reservation\t%s\n", style.Warn("of no CPU, as where critical pods request none: critical shares with standard by weight"))
		}
		if s.Loader.Fence != "" {
			fmt.Fprintf(w, "fence\tCPUs %s, loans: %s\n", s.Loader.Fence, s.Loader.Loans)
		}
		if s.Loader.SMT != config.SMTShare {
			fmt.Fprintf(w, "smt\t%s\n", s.Loader.SMT)
		}
		if s.Loader.LLCs > 1 {
			fmt.Fprintf(w, "placement\tnear where a task last ran: %d last-level caches\n", s.Loader.LLCs)
		}
	}
	switch s.LimitsMode {
	case config.LimitsIgnore:
		fmt.Fprintf(w, "limits\t%s\n", style.Warn("ignored: cpu.max is not kept"))
	case config.LimitsGap, config.LimitsFreeze:
		fmt.Fprintf(w, "limits\t%s\n", s.LimitsMode)
	}
}

func (s *Status) writeTiers(w io.Writer) {
	fmt.Fprintln(w, "TIER\tCGROUPS\tCPU TIME\tWAIT P50\tP99\tMAX\tQUEUED\tPREEMPTED\tSTARVATION TURNS\tAGED\tBOOSTED")
	for _, t := range s.Tiers {
		fmt.Fprintf(w, "%s\t%d\t%.1f s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\n", t.Tier, t.Cgroups, t.CPUSeconds,
			host.Below(t.WaitP50US), host.Below(t.WaitP99US), host.Micros(t.WaitMaxUS), t.Queued, t.Preempted, t.StarvationTurns, t.Aged, t.Boosted)
	}
}

func (s *Status) writeLimits(w io.Writer) {
	fmt.Fprintln(w, "LIMIT OF\tMODE\tCPUS\tUSED\tBEYOND\tOVERRUN\tPERIODS\tTHROTTLED IN\tTHROTTLES\tTHROTTLED\tLONGEST\tWAITING")
	for _, l := range s.Limits {
		fmt.Fprintf(w, "%s\t%s\t%.3g\t%.1f s\t%.1f s\t%.1f ms\t%d\t%d\t%d\t%.1f s\t%.1f ms\t%d\n", l.Cgroup, l.Mode, l.CPUs, l.UsedSeconds,
			l.BeyondSeconds, l.OverrunMs, l.Periods, l.ThrottledPeriods, l.Throttles, l.ThrottledSeconds, l.LongestThrottleMs, l.Waiting)
	}
}

func (s *Status) writeCgroups(w io.Writer) {
	fmt.Fprintln(w, "CGROUP\tTIER\tBY\tTHERE")
	for _, c := range s.Cgroups {
		there := "yes"
		if !c.Present {
			there = "not yet"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", c.Cgroup, c.Tier, c.Source, there)
	}
}

func (s *Status) writeExits(w io.Writer) {
	fmt.Fprintln(w, "EXIT OF SCX_TEMPER\tSTATUS\tTIMES\tWHY")
	for _, e := range s.Exits {
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\n", stamp(e.Time), e.Status, e.Times, e.Text)
	}
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

func timeout(seconds float64) string {
	if seconds == 0 {
		return "no time without one"
	}
	return fmt.Sprintf("%.0f s without one", seconds)
}
