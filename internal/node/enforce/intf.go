// Package enforce puts tiers into force on one node: it owns scx_temper, the maps that
// scx_temper pins, and what is done instead where scx_temper cannot be attached.
package enforce

import "temper.dev/temper/internal/base/tier"

// The Go side of sched/intf.h. intf_test.go compares each name, offset and value with the C side.

// OpsName is the scheduler's name in /sys/kernel/sched_ext/root/ops.
const OpsName = "temper"

// MaxCgroups is how many the scheduler can tell apart, and one.
const MaxCgroups = 16384

// MaxLevels is how many levels below the root it can tell apart.
const MaxLevels = 256

// ABI is the layout of the maps that this code can read.
const ABI = 10

// WatchdogMs is how long a runnable task may wait before the kernel throws the scheduler out.
const WatchdogMs = 30000

// What a runnable task waits for.
const (
	WaitAnyCPU   = 0
	WaitOneCPU   = 1
	WaitLimit    = 2
	WaitRealTime = 3

	WaitCauses = 4
)

// HistBuckets is the number of buckets of a Hist.
const HistBuckets = 28

// Marks is how many beginnings of half periods a Limit keeps.
const Marks = 32

// Hist counts in power-of-two microsecond buckets: [0] is < 1 us, [i] is < 2^i us, the last is all above.
type Hist struct {
	Bucket [HistBuckets]uint64
}

// TierStats counts for one tier.
type TierStats struct {
	RunNs           uint64
	Enqueued        uint64
	PlacedIdle      uint64
	Preempted       uint64
	StarvationTurns uint64
	Aged            uint64
	Boosted         uint64
	MaxWaitNs       uint64
	Wait            Hist
}

// Stats is the entry of map "stats", for one CPU.
type Stats struct {
	Tier         [tier.Count]TierStats
	Gap          Hist
	LoanBack     Hist
	Rechecks     uint64
	SystemOver   uint64
	CriticalOver uint64
	Crowded      uint64

	LongestWaitNs [WaitCauses]uint64
}

// Waits is the entry of map "waits".
type Waits struct {
	UnderWayNs [WaitCauses]uint64
	TID        [WaitCauses]uint32
}

// Control is the entry of map "control".
type Control struct {
	TierGen         uint64
	HeartbeatNs     uint64
	ReservationMCPU uint64 // where Info.Reservation is set
}

// Assignment is an entry of map "tiers": what holds for a cgroup, and for all below it that has none of its own.
type Assignment struct {
	Tier   uint16
	Limits uint16 // LimitsPaced + 1 and so on, but not LimitsIgnore; 0: the node's
}

// When background may run in the fence: config.LoansGaps, LoansIdle and LoansNever.
const (
	LoanGaps  = 0
	LoanIdle  = 1
	LoanNever = 2
)

// What becomes of a task whose cgroup has used up its cpu.max: config.LimitsPaced and so on.
const (
	LimitsPaced  = 0
	LimitsGap    = 1
	LimitsFreeze = 2
	LimitsIgnore = 3
)

// Limit is an entry of map "limits"; QuotaNs of 0: the cgroup has no limit.
type Limit struct {
	Cgroup            uint64
	QuotaNs           uint64
	PeriodNs          uint64
	BurstNs           uint64
	LeftNs            int64
	FilledAt          uint64
	UsedNs            uint64
	BeyondNs          uint64
	OverrunNs         uint64
	Throttles         uint64
	ThrottledSince    uint64
	ThrottledNs       uint64
	LongestThrottleNs uint64
	HalfNs            uint64
	HalfEnds          uint64
	Periods           uint64
	ThrottledPeriods  uint64
	ThrottlesBefore   uint64
	PaidNs            uint64
	PaidBefore        [Marks]uint64
	At                uint64
	AllowedNs         int64
	Throttled         uint32
	Admitted          uint32
	Mode              uint32
	Pad               uint32
}

// Info is the entry of map "info".
type Info struct {
	ABI                uint32
	NrCPUs             uint32
	HeartbeatTimeoutMs uint32
	SystemSharePct     uint32
	Limits             uint32
	LoaderPID          uint32
	Reservation        uint32
	Loan               uint32
	SMTExclusive       uint32
	LLCs               uint32
	Fence              [8]uint64
	BPFSHA256          [32]uint8
}

// Hog is an entry of map "hogs", by CPU: the real-time task that had it last. Times are CLOCK_MONOTONIC.
type Hog struct {
	SinceNs  uint64 // it has been told of
	SeenNs   uint64 // when it was last found to have had the CPU for long; 0: never
	Turns    uint64 // times that it, or another on that CPU, was lowered for those that wait
	TID      int32
	Process  int32
	Policy   uint32
	Priority uint32
	Starves  uint32 // somebody waits for that CPU, or did when it was lowered last
	Error    int32  // errno: why it cannot be lowered; 0: it can
	Comm     [16]byte
}

// ExitInfo is the entry of map "exit_info".
type ExitInfo struct {
	Kind     int32
	Pad      uint32
	ExitCode int64
	Reason   [128]byte
	Msg      [512]byte
}
