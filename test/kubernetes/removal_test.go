//go:build kubernetes

package kubernetes

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// removal is a cluster of its own, from which objects of the release are removed, one after the other.
type removal struct {
	t        *testing.T
	server   *envtest.Environment
	cluster  client.Client
	objects  []*unstructured.Unstructured
	admitted []*corev1.Pod   // while all objects were there
	tried    map[string]bool // with what the API server was restarted
}

// loaded is a policy of the test. It refuses pods labelled with its value; once it does, the API server has loaded all policies.
const loaded = "test-policies-are-loaded"

func newRemoval(t *testing.T) *removal {
	t.Helper()
	r := &removal{t: t, server: apiServer(), tried: map[string]bool{evaluated(nil): true}}
	r.server.ControlPlane.GetAPIServer().CertDir = t.TempDir() // kept from start to start
	config, err := r.server.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.server.Stop(); err != nil {
			t.Error(err)
		}
	})
	config.QPS = -1
	if r.cluster, err = client.New(config, client.Options{}); err != nil {
		t.Fatal(err)
	}
	r.create(&admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: loaded},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{"CREATE"}, Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}}}}},
			Validations: []admissionv1.Validation{{Expression: "object.metadata.?labels['" + loaded + "'].orValue('') == ''", Message: loaded}},
		},
	})
	r.create(&admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: loaded},
		Spec:       admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: loaded, ValidationActions: []admissionv1.ValidationAction{"Deny"}},
	})
	for name, labels := range map[string]map[string]string{"temper-system": nil, "shop": {highestTier: "critical"}, "batch": {highestTier: "background"}} {
		r.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
	}
	r.create(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "of-the-cluster"}, Value: 7})
	r.objects = slices.Concat(manifested(t, "crds/*.yaml"), manifested(t, "*.yaml"))
	for _, object := range r.objects {
		r.put(object)
	}
	r.inForce()
	for _, pod := range somePods() {
		if r.try(pod) == nil {
			r.admitted = append(r.admitted, pod)
		}
	}
	if all := len(somePods()); len(r.admitted) == all || len(r.admitted) < all/2 {
		t.Fatalf("%d of %d pods are admitted while all objects are there: that tries out too little", len(r.admitted), all)
	}
	return r
}

// somePods are pods of each class, and so of each tier, in namespaces of each kind.
func somePods() (pods []*corev1.Pod) {
	for _, namespace := range []string{"default", "kube-system", "temper-system", "shop", "batch"} {
		for _, class := range []string{"", "of-the-cluster", "temper-critical", "temper-background", "system-cluster-critical", "system-node-critical"} {
			pods = append(pods, podOf(namespace, "p", class))
		}
	}
	return pods
}

func (r *removal) create(object client.Object) {
	r.t.Helper()
	if err := r.cluster.Create(r.t.Context(), object); err != nil {
		r.t.Fatal(err)
	}
}

// put makes an object of the release, with the values that refuse most.
func (r *removal) put(object *unstructured.Unstructured) {
	r.t.Helper()
	made := object.DeepCopy()
	if made.GetKind() == "ValidatingAdmissionPolicyBinding" {
		if err := unstructured.SetNestedStringSlice(made.Object, []string{"Deny"}, "spec", "validationActions"); err != nil {
			r.t.Fatal(err)
		}
	}
	// The API server serves a new kind a moment after its definition was made.
	eventually(r.t, "made: "+called(object), func() bool {
		err := r.cluster.Create(r.t.Context(), made.DeepCopy())
		return err == nil || apierrors.IsAlreadyExists(err)
	})
}

func (r *removal) remove(object *unstructured.Unstructured) {
	r.t.Helper()
	err := r.cluster.Delete(r.t.Context(), object.DeepCopy(), client.GracePeriodSeconds(0))
	if object.GetKind() == "CustomResourceDefinition" && err == nil {
		eventually(r.t, "removed: "+called(object), func() bool {
			return apierrors.IsNotFound(r.cluster.Get(r.t.Context(), client.ObjectKeyFromObject(object), object.DeepCopy()))
		})
	} else if client.IgnoreNotFound(err) != nil && !isNoKind(err) { // one that has gone together with its definition
		r.t.Fatalf("%s: %v", called(object), err)
	}
}

func isNoKind(err error) bool { return strings.Contains(err.Error(), "no matches for kind") }

// restart starts the API server anew, unless it was with the same of what matters to one that starts; and awaits that it has
// loaded its policies.
func (r *removal) restart(left []*unstructured.Unstructured) bool {
	r.t.Helper()
	what := evaluated(left)
	if r.tried[what] {
		return false
	}
	r.tried[what] = true
	api := r.server.ControlPlane.GetAPIServer()
	if err := api.Stop(); err != nil {
		r.t.Fatal(err)
	}
	if err := api.Start(); err != nil {
		r.t.Fatal(err)
	}
	probe := podOf("default", "p", "")
	probe.Labels = map[string]string{loaded: "yes"}
	eventually(r.t, "the API server has loaded its policies", func() bool {
		err := r.try(probe)
		return err != nil && strings.Contains(err.Error(), loaded)
	})
	return true
}

func (r *removal) try(pod *corev1.Pod) error {
	return r.cluster.Create(r.t.Context(), pod.DeepCopy(), client.DryRunAll)
}

// inForce awaits that all policies refuse what they are there to refuse.
func (r *removal) inForce() {
	r.t.Helper()
	for _, class := range []string{"temper-critical", "system-node-critical"} {
		patiently(r.t, "in force: pods of "+class+" are refused", 2*patience, func() bool { return r.try(podOf("default", "p", class)) != nil })
	}
}

// stopsNothing fails where pods are refused that were admitted before. The API server itself refuses one whose class is gone.
func (r *removal) stopsNothing(when string, gone []*unstructured.Unstructured) {
	r.t.Helper()
	var refused []string
	for _, pod := range r.admitted {
		err := r.try(pod)
		class := pod.Spec.PriorityClassName
		if slices.Contains(namesOf(gone), "PriorityClass "+class) {
			if err == nil || !strings.Contains(err.Error(), "no PriorityClass with name "+class) {
				r.t.Errorf("%s: a pod of class %s in %s: %v", when, class, pod.Namespace, err)
			}
		} else if err != nil {
			refused = append(refused, fmt.Sprintf("of class %q in %s: %v", class, pod.Namespace, err))
		}
	}
	if len(refused) > 0 {
		r.t.Errorf("%s: %d of %d pods are refused, the first %s", when, len(refused), len(r.admitted), refused[0])
	}
}

func called(o *unstructured.Unstructured) string { return o.GetKind() + " " + o.GetName() }

func namesOf(objects []*unstructured.Unstructured) (names []string) {
	for _, o := range objects {
		names = append(names, called(o))
	}
	slices.Sort(names)
	return names
}

// evaluated are the policies that are bound, and the kinds that are defined: an API server looks at nothing else of Temper's
// when a pod is made.
func evaluated(left []*unstructured.Unstructured) string {
	names := namesOf(left)
	return strings.Join(slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		policy, is := strings.CutPrefix(name, "ValidatingAdmissionPolicy ")
		bound := is && slices.Contains(names, "ValidatingAdmissionPolicyBinding "+policy)
		return !bound && !strings.HasPrefix(name, "CustomResourceDefinition ")
	}), ", ")
}

// in removes objects one after the other, looks at what is said to pods after each, and puts all back.
func (r *removal) in(order string, restarts bool, objects []*unstructured.Unstructured) {
	left := slices.Clone(r.objects)
	for i, object := range objects {
		when := fmt.Sprintf("%s, after %s", order, called(object))
		r.remove(object)
		gone := objects[:i+1]
		left = slices.DeleteFunc(left, func(o *unstructured.Unstructured) bool { return o == object })
		r.stopsNothing(when, gone)
		if restarts && r.restart(left) {
			r.stopsNothing(when+" and a restart", gone)
		}
	}
	for _, object := range r.objects {
		r.put(object)
	}
}

// Whatever of the release is removed, in whatever order, and though the API server is started anew in between: each pod is
// admitted that was admitted before.
func TestWhatIsRemovedStopsNoPod(t *testing.T) {
	r := newRemoval(t)
	for _, object := range r.objects {
		r.in("alone", false, []*unstructured.Unstructured{object})
		r.inForce()
	}
	// After a restart it takes up to half a minute until the policy with a parameter is in force again: nobody waits for it.
	for _, object := range r.objects {
		r.in("alone", true, []*unstructured.Unstructured{object})
	}
	r.in("in order", true, r.objects)
	backwards := slices.Clone(r.objects)
	slices.Reverse(backwards)
	r.in("in reverse", true, backwards)
	if restarts := len(r.tried) - 1; restarts < 10 {
		t.Errorf("%d restarts: that tries out too little", restarts)
	}
}
