package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TemperNode is what Temper does on the node of the same name. The node's agent writes it; nobody else should.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=tn,categories=temper
// +kubebuilder:printcolumn:name="Rung",type=string,JSONPath=`.status.rung`
// +kubebuilder:printcolumn:name="Enforced",type=string,JSONPath=`.status.conditions[?(@.type=="Enforced")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Enforced")].reason`
// +kubebuilder:printcolumn:name="Sized",type=string,JSONPath=`.status.conditions[?(@.type=="Sized")].status`
// +kubebuilder:printcolumn:name="Policy",type=string,JSONPath=`.status.policy`
// +kubebuilder:printcolumn:name="Kernel",type=string,JSONPath=`.status.kernelVersion`,priority=1
// +kubebuilder:printcolumn:name="Reported",type=date,JSONPath=`.status.reported`
type TemperNode struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// +optional
	Status TemperNodeStatus `json:"status,omitempty"`
}

// TemperNodeList is a list of TemperNode.
//
// +kubebuilder:object:root=true
type TemperNodeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TemperNode `json:"items"`
}

// The types of a TemperNode's conditions.
const (
	// ConditionEnforced is True while Temper's scheduler is attached and holds the tiers.
	ConditionEnforced = "Enforced"
	// ConditionLimitsHonoured is True while CPU limits are kept, by whichever scheduler.
	ConditionLimitsHonoured = "LimitsHonoured"
	// ConditionSized is True while the CPU requests of critical pods fit in the node's physical cores but one.
	ConditionSized = "Sized"
	// ConditionSafeMode is True while the node is left to the kernel's own scheduler because somebody asked for it.
	ConditionSafeMode = "SafeMode"
)

// TemperNodeStatus is what is in force, and how the tiers do.
type TemperNodeStatus struct {
	// When the agent last wrote this. It does so at every change, and otherwise once a minute: an older status is of an
	// agent that is gone, or cannot reach the API server.
	// +optional
	Reported metav1.Time `json:"reported,omitempty"`

	// What is in force: Temper's scheduler (scx), cpu.idle on background pods (cpu.idle), or nothing (observe).
	// +kubebuilder:validation:Enum=scx;cpu.idle;observe
	// +optional
	Rung string `json:"rung,omitempty"`

	// The TierPolicy that applies to the node. Empty: none does.
	// +optional
	Policy string `json:"policy,omitempty"`

	// The CPUs up to which critical work comes strictly before standard, by the policy's reservationPercent and what critical
	// pods request; beyond, the two share by weight. Missing: nothing is enforced.
	// +optional
	Reservation *resource.Quantity `json:"reservation,omitempty"`

	// The kernel's version.
	// +optional
	KernelVersion string `json:"kernelVersion,omitempty"`

	// The kernel's version with which tiers were enforced last, by any agent. Where that is the kernel that runs, an agent whose
	// tiers are not in force is not ready, which stops a roll-out. Delete the TemperNode to have the node forget it.
	// +optional
	EnforcedKernelVersion string `json:"enforcedKernelVersion,omitempty"`

	// The SHA-256 of the BPF object of the attached scheduler, where it is Temper's.
	// +optional
	SchedulerSHA256 string `json:"schedulerSHA256,omitempty"`

	// Enforced, LimitsHonoured, Sized and SafeMode. Enforced is False for these reasons: Starting; SafeModeFile, SafeModeNode;
	// NoPolicy; NotKnown, before the API server has answered; NoSchedExt, BadBTF, OtherScheduler, LimitsPresent, IsolatedCPUs,
	// LoadFailed, where the scheduler cannot be attached; Ejected, when the kernel has thrown it out; Failed, for anything else; Stopped,
	// when the agent was.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// The tiers, from the highest.
	// +listType=map
	// +listMapKey=tier
	// +optional
	Tiers []TierStatus `json:"tiers,omitempty"`

	// How soon background work lets go of a CPU. Without Temper's scheduler there is none.
	// +optional
	Gap *GapStatus `json:"gap,omitempty"`

	// What is not as it should be.
	// +listType=atomic
	// +optional
	Problems []string `json:"problems,omitempty"`
}

// GapStatus is for how long background work ran on, in microseconds: the upper edge of a bucket that is a power of two.
type GapStatus struct {
	// While a higher tier waited for its CPU: 50 and 99 per cent of all times.
	// +optional
	OverrunP50Microseconds int64 `json:"overrunP50Microseconds,omitempty"`
	// +optional
	OverrunP99Microseconds int64 `json:"overrunP99Microseconds,omitempty"`

	// In the node's fence, after a loan had ended.
	// +optional
	LoanBackP50Microseconds int64 `json:"loanBackP50Microseconds,omitempty"`
	// +optional
	LoanBackP99Microseconds int64 `json:"loanBackP99Microseconds,omitempty"`
}

// TierStatus is how a tier does on a node. All but pods counts from when the scheduler was attached.
type TierStatus struct {
	Tier Tier `json:"tier"`

	// The pods in it that have a cgroup, as namespace/name.
	// +listType=atomic
	// +optional
	Pods []string `json:"pods,omitempty"`

	// CPU time used, in seconds.
	// +optional
	CPUSeconds string `json:"cpuSeconds,omitempty"`

	// The time in which 50 and 99 per cent of all waits for a CPU ended, in microseconds: the upper edge of a bucket that
	// is a power of two.
	// +optional
	WaitP50Microseconds int64 `json:"waitP50Microseconds,omitempty"`
	// +optional
	WaitP99Microseconds int64 `json:"waitP99Microseconds,omitempty"`

	// How many waits for a CPU have ended, and how many of them took 16.384 ms or longer.
	// +optional
	Waits int64 `json:"waits,omitempty"`
	// +optional
	LongWaits int64 `json:"longWaits,omitempty"`

	// The longest wait for a CPU, in microseconds.
	// +optional
	WaitMaxMicroseconds int64 `json:"waitMaxMicroseconds,omitempty"`
}
