package nodepods

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/node/agent"
	"temper.dev/temper/internal/node/config"
	"temper.dev/temper/internal/node/enforce"
	"temper.dev/temper/internal/node/status"
)

// Of messages and lists that grow with what goes wrong, so much is kept: an object has a bounded size.
const (
	longestMessage = 1024 // characters
	mostProblems   = 20
)

// Reasons of the condition Enforced, beside those of agent.Off.
const (
	reasonAttached = "Attached"
	reasonStarting = "Starting"
	reasonStopped  = "Stopped"
	reasonFailed   = "Failed"
)

// reasons are why scx_temper ended, by its exit status.
var reasons = map[int]string{
	exit.NoSchedExt:     "NoSchedExt",
	exit.BadBTF:         "BadBTF",
	exit.OtherScheduler: "OtherScheduler",
	exit.LimitsPresent:  "LimitsPresent",
	exit.LoadFailed:     "LoadFailed",
	exit.IsolatedCPUs:   "IsolatedCPUs",
	exit.Ejected:        "Ejected",
}

// Conditions are a node's, by its agent's state and a look at it.
func Conditions(root host.Root, state agent.State, seen *status.Status) []metav1.Condition {
	return []metav1.Condition{enforced(state, seen), limitsHonoured(seen), safeMode(state), sized(root, state.CriticalMilliCPU)}
}

// statusOf is what a TemperNode says of an agent's state and a look at the node. Of what it said before it keeps when
// conditions last changed, and with which kernel tiers were enforced last.
func statusOf(root host.Root, state agent.State, seen *status.Status, kernel string, before v1alpha1.TemperNodeStatus) v1alpha1.TemperNodeStatus {
	s := v1alpha1.TemperNodeStatus{Rung: string(seen.Rung), Policy: state.Policy, Conditions: slices.Clone(before.Conditions),
		KernelVersion: kernel, EnforcedKernelVersion: before.EnforcedKernelVersion}
	if seen.Loader != nil {
		s.SchedulerSHA256 = seen.Loader.BPFSHA256
		if seen.Enforced && seen.Loader.Reserves {
			s.Reservation = resource.NewMilliQuantity(int64(math.Round(seen.Loader.ReservationCPUs*1000)), resource.DecimalSI)
		}
	}
	for _, c := range Conditions(root, state, seen) {
		c.Message = cut(c.Message)
		meta.SetStatusCondition(&s.Conditions, c)
	}
	if meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionEnforced) {
		s.EnforcedKernelVersion = kernel
	}
	for t := range tier.Tier(tier.Count) {
		s.Tiers = append(s.Tiers, tierStatus(t, state.Members, seen))
	}
	if g := seen.Gap; g != nil {
		s.Gap = &v1alpha1.GapStatus{
			OverrunP50Microseconds: int64(g.P50US), OverrunP99Microseconds: int64(g.P99US),
			LoanBackP50Microseconds: int64(g.LoanBackP50US), LoanBackP99Microseconds: int64(g.LoanBackP99US),
		}
	}
	for i, problem := range seen.Problems {
		if i == mostProblems {
			s.Problems = append(s.Problems, fmt.Sprintf("and %d more: see 'temper status' on the node", len(seen.Problems)-i))
			break
		}
		s.Problems = append(s.Problems, cut(problem))
	}
	return s
}

// cut bounds a text's length.
func cut(text string) string { return strings.ToValidUTF8(text[:min(len(text), longestMessage)], "") }

func enforced(state agent.State, seen *status.Status) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionEnforced, Status: metav1.ConditionFalse, Message: seen.Reason}
	switch {
	case seen.Rung == enforce.SCX && seen.Enforced:
		c.Status, c.Reason = metav1.ConditionTrue, reasonAttached
	case state.PID == 0:
		c.Reason = reasonStopped
	case state.Off != nil:
		c.Reason = state.Off.Reason
	case len(state.Exits) == 0 || state.Exits[len(state.Exits)-1].Time.Before(state.Started):
		c.Reason = reasonStarting
	default:
		c.Reason = reasonFailed
		if known, ok := reasons[state.Exits[len(state.Exits)-1].Status]; ok {
			c.Reason = known
		}
	}
	return c
}

// limitsHonoured is about CPU limits: while Temper is attached the kernel does not keep them, and Temper has to.
func limitsHonoured(seen *status.Status) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionLimitsHonoured, Status: metav1.ConditionTrue, Reason: "Kernel", Message: "the kernel keeps CPU limits itself"}
	switch {
	case !seen.Enforced && seen.Scheduler.Enabled():
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, "OtherScheduler", "while another sched_ext scheduler is attached, the kernel does not keep CPU limits; whether "+seen.Scheduler.Ops+" does, nobody knows here"
	case !seen.Enforced:
	case seen.LimitsMode == "":
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, "NotRead", "the scheduler's maps cannot be read"
	case seen.LimitsMode == config.LimitsIgnore:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "Ignored", "CPU limits are not kept, as the policy says"
	case seen.Crowded > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "TooManyCgroups", fmt.Sprintf("CPU limits of %d cgroups are not kept: the node has more cgroups, or more levels of them, than can be told apart", seen.Crowded)
	default:
		c.Reason, c.Message = "Temper", "Temper keeps CPU limits, "+seen.LimitsMode
	}
	return c
}

// sized is whether the node can keep what it promises to critical pods: what they request must fit in its physical
// cores but one. Two threads of a core do not do the work of two cores, and system work needs its place.
func sized(root host.Root, criticalMilliCPU int64) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionSized, Status: metav1.ConditionTrue, Reason: "Fits"}
	cores, err := root.Cores()
	if err != nil {
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, "CoresUnknown", err.Error()
		return c
	}
	c.Message = fmt.Sprintf("critical pods request %.4g CPUs, and %d cores but one have room for %d", float64(criticalMilliCPU)/1000, cores, cores-1)
	if criticalMilliCPU > int64(cores-1)*1000 {
		c.Status, c.Reason = metav1.ConditionFalse, "TooMuchCritical"
		c.Message += ": at full load they wait for each other; move some away, lower what they request, or take a larger node"
	}
	return c
}

func safeMode(state agent.State) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionSafeMode, Status: metav1.ConditionFalse, Reason: "NotAsked", Message: "nobody has asked for it"}
	if off := state.Off; off != nil && strings.HasPrefix(off.Reason, "SafeMode") {
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, off.Reason, off.Message
	}
	return c
}

func tierStatus(t tier.Tier, members []agent.Member, seen *status.Status) v1alpha1.TierStatus {
	s := v1alpha1.TierStatus{Tier: v1alpha1.Tier(t.String())}
	for _, m := range members {
		if m.Tier == t && m.Pod != "" && m.Present {
			s.Pods = append(s.Pods, m.Pod)
		}
	}
	slices.Sort(s.Pods) // members come by their UIDs
	if int(t) < len(seen.Tiers) {
		figures := seen.Tiers[t]
		s.CPUSeconds = strconv.FormatFloat(figures.CPUSeconds, 'f', 3, 64)
		s.WaitP50Microseconds, s.WaitP99Microseconds = int64(figures.WaitP50US), int64(figures.WaitP99US)
		s.WaitMaxMicroseconds = int64(figures.WaitMaxUS)
		s.Waits, s.LongWaits = int64(figures.Waits), int64(figures.LongWaits)
	}
	return s
}
