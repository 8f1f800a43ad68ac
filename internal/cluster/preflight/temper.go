package preflight

import (
	"bytes"
	"fmt"
	"io/fs"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/cluster/manifest"
	"temper.dev/temper/packaging/kubernetes"
)

// temper is what an installation with the chart's default values makes.
type temper struct {
	namespace string
	objects   []*unstructured.Unstructured
	agent     *appsv1.DaemonSet
	policy    *v1alpha1.TierPolicy
}

// shipped reads the manifests that the chart makes, as they would be in a namespace.
func shipped(namespace string) (*temper, error) {
	t := &temper{namespace: namespace}
	files, err := fs.Glob(kubernetes.Objects, "*.yaml")
	if err != nil {
		return nil, err
	}
	definitions, err := fs.Glob(kubernetes.Objects, "crds/*.yaml")
	if err != nil {
		return nil, err
	}
	for _, file := range append(files, definitions...) {
		text, err := kubernetes.Objects.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if err := manifest.Read(file, bytes.NewReader(text), t.take); err != nil {
			return nil, err
		}
	}
	if t.agent == nil {
		return nil, errNoAgent
	}
	return t, nil
}

func (t *temper) take(object map[string]any) error {
	o := &unstructured.Unstructured{Object: object}
	if o.GetNamespace() != "" {
		o.SetNamespace(t.namespace)
	}
	convert := runtime.DefaultUnstructuredConverter.FromUnstructured
	switch o.GetKind() {
	case "Kustomization", "Namespace": // no object; and one that Helm makes or takes as it is
		return nil
	case "DaemonSet":
		t.agent = &appsv1.DaemonSet{}
		if err := convert(object, t.agent); err != nil {
			return fmt.Errorf("DaemonSet: %w", err)
		}
	case "TierPolicy":
		t.policy = &v1alpha1.TierPolicy{}
		if err := convert(object, t.policy); err != nil {
			return fmt.Errorf("TierPolicy: %w", err)
		}
	}
	t.objects = append(t.objects, o)
	return nil
}

// agentPod is a pod of the agent's DaemonSet.
func (t *temper) agentPod() *corev1.Pod {
	template := t.agent.Spec.Template
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: t.agent.Name, Labels: template.Labels},
		Spec:       *template.Spec.DeepCopy(),
	}
}
