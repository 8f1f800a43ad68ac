package overcommit

import (
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"temper.dev/temper/api/v1alpha1"
)

// PolicyAnnotation keeps the Policy that admission policies were made of, as JSON.
const PolicyAnnotation = "temper.dev/overcommit-policy"

// stored is what PolicyAnnotation says.
func (r *Rules) stored() map[string]string {
	p := r.Policy
	p.TierPolicies = nil
	for _, from := range r.TierPolicies { // without what a cluster knows of them beside
		p.TierPolicies = append(p.TierPolicies, &v1alpha1.TierPolicy{ObjectMeta: metav1.ObjectMeta{Name: from.Name}, Spec: from.Spec})
	}
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // a Policy is plain data
	}
	return map[string]string{PolicyAnnotation: string(text)}
}

// Stored are the rules that an admission policy was made of.
func Stored(policy metav1.Object) (*Rules, error) {
	var p Policy
	text, ok := policy.GetAnnotations()[PolicyAnnotation]
	if !ok {
		return nil, fmt.Errorf("MutatingAdmissionPolicy %s does not say what it was made of: it has no annotation %s", policy.GetName(), PolicyAnnotation)
	}
	err := json.Unmarshal([]byte(text), &p)
	var r *Rules
	if err == nil {
		r, err = Compile(p)
	}
	if err != nil {
		return nil, fmt.Errorf("annotation %s of MutatingAdmissionPolicy %s: %w", PolicyAnnotation, policy.GetName(), err)
	}
	return r, nil
}

// Lowers says whether the rules lower anything.
func (r *Rules) Lowers() bool { return r.permille < 1000 }

// After are the rules that follow others: pods of those can be told, and keep their originals.
func (r *Rules) After(earlier *Rules) (*Rules, error) {
	p := r.Policy
	now := Lowering{r.Factor, r.Floor}
	for _, before := range append(slices.Clone(earlier.Before), Lowering{earlier.Factor, earlier.Floor}) {
		if before != now && before.Factor < 1 && !slices.Contains(p.Before, before) {
			p.Before = append(p.Before, before)
		}
	}
	for _, name := range slices.Concat(earlier.Namespaces, earlier.Left) {
		if !slices.Contains(p.Namespaces, name) && !slices.Contains(p.Left, name) {
			p.Left = append(p.Left, name)
		}
	}
	return Compile(p)
}

// Closed are rules that lower nothing: their policy removes the annotations of new pods.
func (r *Rules) Closed() *Rules {
	closed := *r
	closed.Factor, closed.permille = 1, 1000
	return &closed
}

// Closing are the admission policies that lower nothing any more, and still keep annotations from being written: those of
// new pods are removed, those of other pods stay as they were.
func (r *Rules) Closing() []runtime.Object { return append(r.keepers(), r.Closed().lowerers()...) }

// All are the namespaces whose pods may have been lowered.
func (r *Rules) All() []string { return slices.Concat(r.Namespaces, r.Left) }
