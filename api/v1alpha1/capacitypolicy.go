package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CapacityPolicyName is the name of the one CapacityPolicy that a cluster has.
const CapacityPolicyName = "default"

// OvercommitResource is the extended resource that a node offers while pods with lowered requests may come to it. Each such
// pod asks for one.
const OvercommitResource = "temper.dev/overcommit"

// CapacityPolicy says whose CPU requests temper-controller has lowered when pods are created, and when that is to pause.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=cpol,categories=temper
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'default'",message="a cluster has one CapacityPolicy, and its name is default"
// +kubebuilder:printcolumn:name="Factor",type=integer,JSONPath=`.spec.factorPercent`
// +kubebuilder:printcolumn:name="In force",type=integer,JSONPath=`.status.factorPercent`
// +kubebuilder:printcolumn:name="Fit",type=integer,JSONPath=`.status.fitNodes`
// +kubebuilder:printcolumn:name="Nodes",type=integer,JSONPath=`.status.nodes`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Guarded",type=string,JSONPath=`.status.conditions[?(@.type=="Guarded")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Guarded")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type CapacityPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// +required
	Spec CapacityPolicySpec `json:"spec"`
	// +optional
	Status CapacityPolicyStatus `json:"status,omitempty"`
}

// CapacityPolicyList is a list of CapacityPolicy.
//
// +kubebuilder:object:root=true
type CapacityPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CapacityPolicy `json:"items"`
}

// CapacityPolicySpec is what a CapacityPolicy asks for.
type CapacityPolicySpec struct {
	// The namespaces whose pods are lowered. Those of Kubernetes and of Temper itself never are.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="!self.exists(n, n in ['kube-system', 'temper-system'])",message="the requests of kube-system and temper-system are never lowered"
	// +listType=set
	// +required
	Namespaces []string `json:"namespaces"`

	// Per cent of its CPU request that a pod is left with.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:default=50
	// +optional
	FactorPercent int32 `json:"factorPercent,omitempty"`

	// No container's request is lowered below this: from 1m to 1000000.
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('1m')) >= 0 && quantity(string(self)).compareTo(quantity('1000000')) <= 0",message="a floor is from 1m to 1000000 CPUs"
	// +kubebuilder:default="10m"
	// +optional
	Floor resource.Quantity `json:"floor,omitempty"`

	// The tiers whose pods are lowered: standard, background, or both.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:Enum=standard;background
	// +kubebuilder:default={standard,background}
	// +listType=set
	// +optional
	Tiers []Tier `json:"tiers,omitempty"`

	// Workloads whose pods are left alone, beside those that a HorizontalPodAutoscaler scales by CPU utilisation.
	// +kubebuilder:validation:MaxItems=256
	// +listType=atomic
	// +optional
	Exempt []ExemptWorkload `json:"exempt,omitempty"`

	// The nodes that the namespaces' pods run on: the guard looks at these, and lowered pods come to no other. Omitted: all.
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ['In','NotIn','Exists','DoesNotExist'] && (e.operator in ['In','NotIn']) == (has(e.values) && e.values.size() > 0))",message="In and NotIn have values, Exists and DoesNotExist have none, and there is no other operator"
	// +optional
	NodeSelector *metav1.LabelSelector `json:"nodeSelector,omitempty"`

	// When new pods keep their requests.
	// +kubebuilder:default={}
	// +optional
	Guard GuardSpec `json:"guard,omitempty"`
}

// ExemptWorkload names what makes pods.
type ExemptWorkload struct {
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +required
	Namespace string `json:"namespace"`
	// +kubebuilder:validation:Enum=Deployment;ReplicaSet;StatefulSet;ReplicationController
	// +required
	Kind string `json:"kind"`
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	// +required
	Name string `json:"name"`
}

// GuardSpec says which nodes are fit, and how many have to be. A node is fit while its tiers are enforced and it is within
// both maxima.
type GuardSpec struct {
	// Per cent of the nodes that have to be fit. With fewer, new pods keep their requests.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:default=90
	// +optional
	MinFitPercent int32 `json:"minFitPercent,omitempty"`

	// Per cent of a node's CPUs that the tiers above background may use.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:default=85
	// +optional
	MaxUsePercent int32 `json:"maxUsePercent,omitempty"`

	// Per cent of the waits for a CPU of a node's standard tier that may take 16 ms or longer.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:default=1
	// +optional
	MaxLongWaitsPercent int32 `json:"maxLongWaitsPercent,omitempty"`

	// For how many seconds the nodes have to be calm before new pods are lowered, at the start and after each pause. Calm is a
	// fit node that uses 10 per cent of its CPUs less than the maximum, and has half of the long waits or fewer.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	// +kubebuilder:default=600
	// +optional
	RecoverAfterSeconds *int32 `json:"recoverAfterSeconds,omitempty"`
}

// The types of a CapacityPolicy's conditions.
const (
	// ConditionReady is True while the API server has what the CapacityPolicy asks for, as far as the guard lets it.
	ConditionReady = "Ready"
	// ConditionGuarded is True while the guard has new pods keep their requests.
	ConditionGuarded = "Guarded"
)

// CapacityPolicyStatus is what temper-controller makes of the policy.
type CapacityPolicyStatus struct {
	// Ready and Guarded. Guarded is True for these reasons: NoNodes; NotEnforced, UseTooHigh, WaitsTooLong, of too many nodes;
	// NotMeasured, before enough nodes were; Recovering, until they were calm for long enough; and where nothing can be lowered,
	// for that of Ready: Invalid, ForeignPolicy, NoNamespace, Failed.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Per cent of its CPU request that a new pod is left with now: spec.factorPercent, or 100.
	// +optional
	FactorPercent int32 `json:"factorPercent,omitempty"`

	// The nodes that the guard looks at, and those of them that are fit.
	// +optional
	Nodes int32 `json:"nodes"`
	// +optional
	FitNodes int32 `json:"fitNodes"`

	// Since when the nodes have been calm, while the guard waits for that.
	// +optional
	CalmSince *metav1.Time `json:"calmSince,omitempty"`
}
