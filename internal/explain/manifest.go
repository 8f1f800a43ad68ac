// Package explain says of manifests which tier their pods will be in, without a cluster.
package explain

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/policy"
)

// Manifests is what files hold of what matters to tiers.
type Manifests struct {
	Pods     []Pod
	Policies []*policy.Policy
	Classes  []*schedulingv1.PriorityClass
	Others   int // objects that have no pods
}

// Pod is a pod, or what a workload makes its pods from.
type Pod struct {
	Name string // as in Deployment/shop/web
	pod  *corev1.Pod
}

// extensions are those of manifests in a folder.
var extensions = []string{".yaml", ".yml", ".json"}

// What is decoded strictly: a misspelt field would be taken for one that was left out.
var decoder = func() runtime.Decoder {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, schedulingv1.AddToScheme, v1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
}()

// Read adds what a file holds, YAML or JSON, of one document or several. Errors count its documents from 1.
func (m *Manifests) Read(name string, file io.Reader) error {
	documents := yaml.NewYAMLReader(bufio.NewReader(file))
	for n := 1; ; n++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = m.add(document)
		}
		if err != nil {
			return fmt.Errorf("%s, document %d: %w", name, n, err)
		}
	}
}

// ReadPath reads a file, or all manifests in a folder and below it.
func (m *Manifests) ReadPath(name string) error {
	return filepath.WalkDir(name, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path != name && !slices.Contains(extensions, filepath.Ext(path)) {
			return err
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		return m.Read(path, file)
	})
}

func (m *Manifests) add(document []byte) error {
	text, err := yaml.ToJSON(document)
	if err != nil {
		return err
	}
	if string(text) == "null" { // comments alone
		return nil
	}
	object, kind, err := decoder.Decode(text, nil, nil)
	if runtime.IsNotRegisteredError(err) {
		m.Others++
		return nil
	}
	if err != nil {
		return err
	}
	return m.take(object, kind)
}

func (m *Manifests) take(object runtime.Object, kind *schema.GroupVersionKind) error {
	switch o := object.(type) {
	case *corev1.List:
		for i, item := range o.Items {
			if err := m.add(item.Raw); err != nil {
				return fmt.Errorf("items[%d]: %w", i, err)
			}
		}
	case *corev1.PodList:
		for i := range o.Items {
			m.addPod("Pod", o.Items[i].ObjectMeta, &o.Items[i])
		}
	case *corev1.Pod:
		m.addPod("Pod", o.ObjectMeta, o)
	case *v1alpha1.TierPolicy:
		p, err := policy.Compile(o)
		if err != nil {
			return err
		}
		m.Policies = append(m.Policies, p)
	case *schedulingv1.PriorityClass:
		m.Classes = append(m.Classes, o)
	default:
		meta, template := template(o)
		if template == nil {
			m.Others++
			return nil
		}
		m.addPod(kind.Kind, *meta, &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec})
	}
	return nil
}

// template is what a workload makes its pods from; nil: it makes none.
func template(object runtime.Object) (*metav1.ObjectMeta, *corev1.PodTemplateSpec) {
	switch o := object.(type) {
	case *appsv1.Deployment:
		return &o.ObjectMeta, &o.Spec.Template
	case *appsv1.ReplicaSet:
		return &o.ObjectMeta, &o.Spec.Template
	case *appsv1.StatefulSet:
		return &o.ObjectMeta, &o.Spec.Template
	case *appsv1.DaemonSet:
		return &o.ObjectMeta, &o.Spec.Template
	case *corev1.ReplicationController:
		return &o.ObjectMeta, o.Spec.Template
	case *batchv1.Job:
		return &o.ObjectMeta, &o.Spec.Template
	case *batchv1.CronJob:
		return &o.ObjectMeta, &o.Spec.JobTemplate.Spec.Template
	}
	return nil, nil
}

func (m *Manifests) addPod(kind string, meta metav1.ObjectMeta, pod *corev1.Pod) {
	name := meta.Name
	if name == "" {
		name = meta.GenerateName + "*"
	}
	if meta.Namespace != "" {
		name = meta.Namespace + "/" + name
	}
	m.Pods = append(m.Pods, Pod{kind + "/" + name, pod})
}
