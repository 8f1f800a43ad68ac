// Package status merges what the agent says with what the kernel and the pinned maps say.
// It works without an agent too: scx_temper may run alone.
package status

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"

	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/node/agent"
	"temper.dev/temper/internal/node/enforce"
)

// Status is one look at a node.
type Status struct {
	Rung     enforce.Rung `json:"rung"`
	Enforced bool         `json:"enforced"` // the kernel itself says that Temper's scheduler is attached
	Reason   string       `json:"reason"`
	Since    *time.Time   `json:"since"` // of the rung; null: unknown without an agent

	Agent       Agent          `json:"agent"`
	Scheduler   host.Scheduler `json:"scheduler"`
	LimitsMode  string         `json:"limits_mode"`       // as in the configuration; "": nobody knows
	Crowded     int            `json:"crowded,omitempty"` // cgroups beyond those that can be told apart: their tasks run as background
	Loader      *Loader        `json:"loader"`            // null: no maps are pinned
	Tiers       []Tier         `json:"tiers"`
	Gap         *Gap           `json:"gap"`   // null without counters
	Waits       []Wait         `json:"waits"` // by cause; none without counters
	Limits      []Limit        `json:"limits"`
	RealTime    []RealTime     `json:"real_time"`           // tasks that have a CPU for themselves
	RTThrottles uint64         `json:"real_time_throttles"` // turns that were taken from such tasks for those that waited
	Cgroups     []agent.Member `json:"cgroups"`
	Problems    []string       `json:"problems"`
	Exits       []agent.Exit   `json:"exits"` // the newest last

	maps *enforce.Snapshot // nil: no counters
	off  *agent.Off        // why the node is left alone on purpose; nil: it is not
}

// Agent is whether somebody looks after the node.
type Agent struct {
	Running  bool       `json:"running"`
	PID      int        `json:"pid"`
	Config   string     `json:"config"`
	Failures int        `json:"failures"`
	RetryAt  *time.Time `json:"retry_at"`
}

// Loader is what scx_temper has written down about itself.
type Loader struct {
	PID               int     `json:"pid"`
	SystemSharePct    int     `json:"system_share_pct"`
	Reserves          bool    `json:"reserves"`            // false: critical comes first however much it uses
	ReservationCPUs   float64 `json:"reservation_cpus"`    // where it reserves; 0: critical shares with standard by weight
	Fence             string  `json:"fence"`               // a list of CPUs; "": none
	Loans             string  `json:"loans"`               // when background may run in the fence, as in the configuration
	SMT               string  `json:"smt"`                 // as there
	LLCs              int     `json:"llcs"`                // last-level caches that placement knows of
	HeartbeatTimeoutS float64 `json:"heartbeat_timeout_s"` // 0: an orphaned scheduler stays
	HeartbeatAgeS     float64 `json:"heartbeat_age_s"`
	BPFSHA256         string  `json:"bpf_sha256"`
}

// Tier is one tier's figures since the scheduler was attached.
type Tier struct {
	Tier            tier.Tier `json:"tier"`
	Cgroups         int       `json:"cgroups"` // that have it by an entry of their own
	CPUSeconds      float64   `json:"cpu_seconds"`
	Queued          uint64    `json:"queued"`
	PlacedIdle      uint64    `json:"placed_idle"`
	Preempted       uint64    `json:"preempted"`
	StarvationTurns uint64    `json:"starvation_turns"`
	Aged            uint64    `json:"aged"`        // put to the front of the queue after a long wait
	Boosted         uint64    `json:"boosted"`     // times that a task ran out of order, since others waited, or might, for a kernel lock that it held
	WaitP50US       uint64    `json:"wait_p50_us"` // at most: the upper edge of a power-of-two bucket
	WaitP99US       uint64    `json:"wait_p99_us"` // at most
	WaitMaxUS       uint64    `json:"wait_max_us"`
	Waits           uint64    `json:"waits"`      // that have ended
	LongWaits       uint64    `json:"long_waits"` // of these, those of 16.384 ms or longer
}

// Gap is for how long background ran on while a higher tier waited for its CPU, or after a loan had ended.
type Gap struct {
	P50US         uint64 `json:"p50_us"`           // at most
	P99US         uint64 `json:"p99_us"`           // at most
	LoanBackP50US uint64 `json:"loan_back_p50_us"` // at most
	LoanBackP99US uint64 `json:"loan_back_p99_us"` // at most
	Rechecks      uint64 `json:"rechecks"`
	SystemOver    uint64 `json:"system_over"`   // times that the system tier had used up its share
	CriticalOver  uint64 `json:"critical_over"` // times that the critical tier had used up its reservation
}

// Limit is a cgroup's cpu.max, and what it has come to since the scheduler was attached.
type Limit struct {
	Cgroup            string  `json:"cgroup"`
	Mode              string  `json:"mode"` // in which it is kept, as in the configuration
	CPUs              float64 `json:"cpus"` // quota over period
	PeriodMs          float64 `json:"period_ms"`
	BurstMs           float64 `json:"burst_ms"`
	UsedSeconds       float64 `json:"used_s"`
	BeyondSeconds     float64 `json:"beyond_s"`            // of that, beyond the limit, in gaps
	OverrunMs         float64 `json:"overrun_ms"`          // of that, before it was paid: by late timers, and tasks that are never throttled
	Periods           uint64  `json:"periods"`             // of 10 ms or longer, in which it used something or waited
	ThrottledPeriods  uint64  `json:"throttled_periods"`   // in which a task had to wait for the limit
	Throttles         uint64  `json:"throttles"`           // times that a task had to wait for the limit
	ThrottledSeconds  float64 `json:"throttled_s"`         // in which some task waited for it
	LongestThrottleMs float64 `json:"longest_throttle_ms"` // of one task, until it could be chosen again
	Waiting           uint32  `json:"waiting"`             // tasks, now
}

// RealTime is a real-time task that keeps all else from a CPU.
type RealTime struct {
	CPU         int     `json:"cpu"`
	Thread      int     `json:"thread"`
	Process     int     `json:"process"`
	Name        string  `json:"name"`
	Policy      string  `json:"policy"`
	Priority    int     `json:"priority"`
	Seconds     float64 `json:"for_s"`               // for which it has been seen to
	Starves     bool    `json:"starves"`             // others wait for that CPU
	Obstacle    string  `json:"obstacle"`            // why it cannot be RT-throttled; "": it can
	RTThrottles uint64  `json:"real_time_throttles"` // turns for others, on that CPU, since the scheduler was attached
}

// Sources are where the truth lies.
type Sources struct {
	Root      host.Root
	Agent     func() (*agent.State, error) // what the agent says
	Maps      func() (*enforce.Snapshot, error)
	Monotonic time.Duration // CLOCK_MONOTONIC now
}

// Now looks at a node that runs.
func Now(root host.Root) (*Status, error) {
	return Beside(root, func() (*agent.State, error) { return agent.ReadState(root) })
}

// Beside is Now in the process of the agent, which need not read what it has written itself.
func Beside(root host.Root, said func() (*agent.State, error)) (*Status, error) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return nil, fmt.Errorf("CLOCK_MONOTONIC: %w", err)
	}
	return Gather(Sources{
		Root:      root,
		Agent:     said,
		Maps:      func() (*enforce.Snapshot, error) { return enforce.ReadPinned(root.Pins()) },
		Monotonic: time.Duration(now.Nano()),
	}), nil
}

// Gather looks at the node. Missing pieces are told as problems, not as failures: status must
// answer most of all where something is broken.
func Gather(src Sources) *Status {
	s := &Status{Tiers: []Tier{}, Waits: []Wait{}, Limits: []Limit{}, RealTime: []RealTime{}, Cgroups: []agent.Member{}, Problems: []string{}, Exits: []agent.Exit{}}
	var err error
	if s.Scheduler, err = src.Root.Scheduler(); err != nil {
		s.problem("the kernel's state cannot be read: %v", err)
	}
	s.Enforced = s.Scheduler.IsTemper()
	s.fromAgent(src)
	maps, err := src.Maps()
	switch {
	case err == nil:
		s.fromMaps(maps, src.Monotonic)
		s.addFence(src.Root, maps)
		s.addWaits(maps)
		s.addLimits(src.Root, maps.Limits)
		s.addRealTime(maps.Hogs, src.Monotonic)
	case errors.Is(err, fs.ErrPermission):
		s.problem("counters are for root only")
	case !errors.Is(err, enforce.ErrNotPinned):
		s.problem("%v", err)
	}
	return s
}

func (s *Status) problem(format string, args ...any) {
	s.Problems = append(s.Problems, host.Printable(fmt.Sprintf(format, args...)))
}

func (s *Status) fromAgent(src Sources) {
	state, err := src.Agent()
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			s.problem("%v", err)
		}
		s.alone(src.Root, "no agent runs")
		return
	}
	s.Agent = Agent{Running: agent.IsRunning(src.Root), PID: state.PID, Config: state.Config, Failures: state.Failures, RetryAt: state.RetryAt}
	s.Exits = append(s.Exits, state.Exits...)
	if !s.Agent.Running {
		why := state.Reason // its last words
		if state.PID != 0 {
			why = fmt.Sprintf("the agent (process %d) is dead", state.PID)
		}
		s.Agent = Agent{Config: state.Config}
		s.alone(src.Root, why)
		return
	}
	s.Rung, s.Reason, s.Since = state.Rung, state.Reason, &state.Since
	s.Cgroups = append(s.Cgroups, state.Members...)
	s.Problems = append(s.Problems, state.Problems...)
	s.off = cmp.Or(state.Off, agent.SafeMode(src.Root))
	if s.off != nil && state.Off == nil {
		s.problem("%s, and the agent (process %d) has not acted on it", s.off.Message, state.PID)
	}
	if s.Rung == enforce.SCX && !s.Enforced {
		s.Rung, s.Reason = enforce.Observe, "the kernel has no scheduler of Temper, and the agent has yet to see that"
		s.problem("the agent believes that the scheduler is attached, the kernel says state %q, ops %q", s.Scheduler.State, s.Scheduler.Ops)
	}
}

// alone is the rung where only the kernel can be asked.
func (s *Status) alone(root host.Root, why string) {
	if s.off = agent.SafeMode(root); s.off != nil {
		why += "; " + s.off.Message
	}
	s.Rung, s.Reason = enforce.Observe, why
	idle, err := enforce.OpenIdle(root)
	if err != nil {
		s.problem("%v", err)
	}
	switch {
	case s.Enforced:
		s.Rung, s.Reason = enforce.SCX, why+"; the scheduler is attached"
	case err == nil && len(idle.Cgroups()) > 0:
		s.Rung, s.Reason = enforce.CPUIdle, why+"; cpu.idle stays set until an agent starts"
	case s.Scheduler.State == "":
		s.Reason = why + "; this kernel has no sched_ext"
	case s.Scheduler.Enabled():
		s.Reason = why + "; another scheduler is attached: " + s.Scheduler.Ops
	}
}
