package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// TierLabel is the label by which a pod asks for a tier lower than the one that a policy gives it.
const TierLabel = "temper.dev/tier"

// LimitsLabel is the label by which a pod asks for a mode of CPU limits of its own.
const LimitsLabel = "temper.dev/limits"

// HighestTierLabel is the label by which a namespace says which tier its pods may be in at most.
const HighestTierLabel = "temper.dev/highest-tier"

// SafeModeLabel is the label by which a node is left to the kernel's own scheduler, unless its value is false.
const SafeModeLabel = "temper.dev/safe-mode"

// Tier is how urgent a pod's work is.
// +kubebuilder:validation:Enum=system;critical;standard;background
type Tier string

// TierPolicy says which tier the pods of some nodes are in, and how these nodes treat the tiers.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=tp,categories=temper
// +kubebuilder:printcolumn:name="Precedence",type=integer,JSONPath=`.spec.precedence`
// +kubebuilder:printcolumn:name="Limits",type=string,JSONPath=`.spec.limits`
// +kubebuilder:printcolumn:name="Loans",type=string,JSONPath=`.spec.loans`,priority=1
// +kubebuilder:printcolumn:name="SMT",type=string,JSONPath=`.spec.smt`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type TierPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// +required
	Spec TierPolicySpec `json:"spec"`
}

// TierPolicyList is a list of TierPolicy.
//
// +kubebuilder:object:root=true
type TierPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TierPolicy `json:"items"`
}

// TierPolicySpec is what a TierPolicy asks for.
type TierPolicySpec struct {
	// The nodes that the policy is for. Omitted: all.
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ['In','NotIn','Exists','DoesNotExist'] && (e.operator in ['In','NotIn']) == (has(e.values) && e.values.size() > 0))",message="In and NotIn have values, Exists and DoesNotExist have none, and there is no other operator"
	// +optional
	NodeSelector *metav1.LabelSelector `json:"nodeSelector,omitempty"`

	// Of the policies that are for a node, the one with the greatest precedence applies, and no other. Among equals it is
	// the oldest; among those of one second, the one whose name comes first.
	// +kubebuilder:default=0
	// +optional
	Precedence int32 `json:"precedence,omitempty"`

	// What gives pods their tiers. The first rule that fits a pod decides. Where none fits, pods of Kubernetes' own
	// classes are system (system-node-critical) and critical (system-cluster-critical).
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.all(r, self.exists_one(s, s.name == r.name))",message="there are two rules of one name"
	// +listType=atomic
	// +optional
	Rules []TierRule `json:"rules,omitempty"`

	// The tiers of other pods that no rule fits, by their QoS class. Pods of DaemonSets and of namespaces kube-* are standard
	// where it says background.
	// +kubebuilder:default={}
	// +optional
	QoS QoSTiers `json:"qos,omitempty"`

	// Per cent of the CPU requests of a node's critical pods up to which critical work comes strictly before standard;
	// beyond, the two share by weight. A pod that requests no CPU adds nothing.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +kubebuilder:default=100
	// +optional
	ReservationPercent *int32 `json:"reservationPercent,omitempty"`

	// When background work may run on the CPUs of a node's fence: at any moment, given back by an interrupt (gaps); while
	// no critical task is runnable (idle); not at all (never).
	// +kubebuilder:validation:Enum=gaps;idle;never
	// +kubebuilder:default=gaps
	// +optional
	Loans string `json:"loans,omitempty"`

	// Whether background work may run on a thread of a core whose other thread runs critical work (share), or not (exclusive).
	// +kubebuilder:validation:Enum=share;exclusive
	// +kubebuilder:default=share
	// +optional
	SMT string `json:"smt,omitempty"`

	// What becomes of a task whose cgroup has used up its CPU limit: it waits for milliseconds (paced); it may use what
	// nobody wants (gap); it waits for the next period (freeze); nothing (ignore).
	// +kubebuilder:validation:Enum=paced;gap;freeze;ignore
	// +kubebuilder:default=paced
	// +optional
	Limits string `json:"limits,omitempty"`

	// The modes of limits that a pod may ask for by its label temper.dev/limits, in place of the one above: paced, gap,
	// freeze. With gap a pod uses more CPU than its limit says, wherever nobody else wants it. An empty list: none. Where
	// limits are not kept at all (ignore), no pod's are.
	// +kubebuilder:validation:MaxItems=3
	// +kubebuilder:validation:items:Enum=paced;gap;freeze
	// +kubebuilder:default={paced,freeze}
	// +listType=set
	// +optional
	PodLimits []string `json:"podLimits,omitzero"`
}

// TierRule fits a pod whose PriorityClass has one of the names, or whose priority is in the range.
//
// +kubebuilder:validation:XValidation:rule="has(self.priorityClassNames) || has(self.priority)",message="a rule has priorityClassNames, or priority, or both"
type TierRule struct {
	// What status and explain call the rule; no two of a policy have the same.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +required
	Name string `json:"name"`

	// The rule fits pods of these PriorityClasses.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	// +optional
	PriorityClassNames []string `json:"priorityClassNames,omitempty"`

	// The rule fits pods whose priority is in this range, both ends included.
	// +optional
	Priority *PriorityRange `json:"priority,omitempty"`

	// The tier of the pods that it fits. A pod's label temper.dev/tier may ask for a lower one.
	// +required
	Tier Tier `json:"tier"`
}

// PriorityRange is a range of pods' priorities, with both ends.
//
// +kubebuilder:validation:XValidation:rule="has(self.min) || has(self.max)",message="a range has min, or max, or both"
// +kubebuilder:validation:XValidation:rule="!has(self.min) || !has(self.max) || self.min <= self.max",message="min is above max"
type PriorityRange struct {
	// Omitted: however low.
	// +optional
	Min *int32 `json:"min,omitempty"`
	// Omitted: however high.
	// +optional
	Max *int32 `json:"max,omitempty"`
}

// QoSTiers gives each QoS class a tier.
type QoSTiers struct {
	// Of pods whose requests equal their limits, for CPU and memory.
	// +kubebuilder:default=standard
	// +optional
	Guaranteed Tier `json:"guaranteed,omitempty"`
	// Of pods with some other request or limit.
	// +kubebuilder:default=standard
	// +optional
	Burstable Tier `json:"burstable,omitempty"`
	// Of pods without any.
	// +kubebuilder:default=background
	// +optional
	BestEffort Tier `json:"bestEffort,omitempty"`
}
