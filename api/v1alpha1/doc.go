// Package v1alpha1 is the API of Temper in a cluster, group temper.dev.
//
// +kubebuilder:object:generate=true
// +groupName=temper.dev
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is this API's.
var GroupVersion = schema.GroupVersion{Group: "temper.dev", Version: "v1alpha1"}

// AddToScheme makes the kinds of this API known to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &TierPolicy{}, &TierPolicyList{}, &TemperNode{}, &TemperNodeList{},
		&CapacityPolicy{}, &CapacityPolicyList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
