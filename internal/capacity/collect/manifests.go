package collect

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/capacity/snapshot"
	"temper.dev/temper/internal/cluster/manifest"
	"temper.dev/temper/internal/cluster/policy"
)

// Strict is for what people write: a misspelt field would be taken for one that was left out. Status is of clusters, which
// may be newer than this program.
var (
	strict  = serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	lenient = serializer.NewCodecFactory(scheme).UniversalDeserializer()
)

// reader gathers objects until all files are read.
type reader struct {
	*Result
	workloads []workload
	others    map[string]int // objects that are left alone, by kind
	limited   bool           // there is a LimitRange
	fromFile  bool           // there is a snapshot
}

// workload makes pods, so many at a time.
type workload struct {
	snapshot.Workload
	template corev1.PodTemplateSpec
	replicas int32
	made     bool // by another one, which makes its pods in the end
}

// FromFiles reads files and folders of manifests, and snapshots; - is standard input.
func FromFiles(in io.Reader, names []string, now time.Time) (*Result, error) {
	r := &reader{Result: &Result{Snapshot: &snapshot.Snapshot{}}, others: map[string]int{}}
	for _, name := range names {
		if err := r.read(in, name); err != nil {
			return nil, err
		}
	}
	return r.Result, r.finish(now)
}

func (r *reader) read(in io.Reader, name string) error {
	if name == "-" {
		return r.readFile("standard input", in)
	}
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return manifest.ReadPath(name, r.take)
	}
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	return r.readFile(name, file)
}

// readFile reads a snapshot, which may be large, or manifests.
func (r *reader) readFile(name string, file io.Reader) error {
	const enoughToTell = 4096
	buffered := bufio.NewReaderSize(file, enoughToTell)
	begin, err := buffered.Peek(enoughToTell)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %w", name, err)
	}
	if !isSnapshot(begin) {
		return manifest.Read(name, buffered, r.take)
	}
	if r.fromFile || len(r.Nodes)+len(r.Pods) > 0 {
		return fmt.Errorf("%s: a snapshot is of one whole cluster; give it first, and no other", name)
	}
	s, err := snapshot.Read(buffered)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	r.Snapshot, r.fromFile = s, true
	return nil
}

// isSnapshot is whether JSON begins as a snapshot does: no Kubernetes object has nodes.
func isSnapshot(begin []byte) bool {
	d := json.NewDecoder(bytes.NewReader(begin))
	open, err := d.Token()
	if err != nil || open != json.Delim('{') {
		return false
	}
	first, err := d.Token()
	return err == nil && first == "nodes"
}

// take decodes an object, and puts it where it belongs.
func (r *reader) take(object map[string]any) error {
	if kind, _ := object["kind"].(string); kind == verticalKind {
		return r.takeVertical(object)
	}
	if m, ok := object["metadata"].(map[string]any); ok {
		delete(m, "managedFields")
	}
	whole, err := json.Marshal(object)
	if err != nil {
		return err
	}
	delete(object, "status")
	written, err := json.Marshal(object)
	if err != nil {
		return err
	}
	if _, kind, err := strict.Decode(written, nil, nil); runtime.IsNotRegisteredError(err) {
		r.others[kind.GroupVersion().String()+" "+kind.Kind]++
		return nil
	} else if err != nil {
		return err
	}
	decoded, kind, err := lenient.Decode(whole, nil, nil)
	if err != nil {
		return err
	}
	if !r.place(decoded) {
		r.others[kind.Kind]++
	}
	return nil
}

// place puts an object into the snapshot; false: there is no place for it.
func (r *reader) place(object runtime.Object) bool {
	if o, ok := object.(metav1.Object); ok && o.GetNamespace() == "" && namespaced(object) {
		o.SetNamespace(metav1.NamespaceDefault)
	}
	s := r.Snapshot
	switch o := object.(type) {
	case *corev1.Pod:
		r.Pods = append(r.Pods, o)
	case *corev1.Node:
		s.Nodes = append(s.Nodes, o)
	case *corev1.Namespace:
		s.Namespaces = append(s.Namespaces, o)
	case *schedulingv1.PriorityClass:
		s.PriorityClasses = append(slices.DeleteFunc(s.PriorityClasses, func(c *schedulingv1.PriorityClass) bool { return c.Name == o.Name }), o)
	case *policyv1.PodDisruptionBudget:
		s.PodDisruptionBudgets = append(s.PodDisruptionBudgets, o)
	case *corev1.PersistentVolume:
		s.PersistentVolumes = append(s.PersistentVolumes, o)
	case *corev1.PersistentVolumeClaim:
		s.PersistentVolumeClaims = append(s.PersistentVolumeClaims, o)
	case *storagev1.StorageClass:
		s.StorageClasses = append(s.StorageClasses, o)
	case *storagev1.CSINode:
		s.CSINodes = append(s.CSINodes, o)
	case *storagev1.VolumeAttachment:
		s.VolumeAttachments = append(s.VolumeAttachments, o)
	case *corev1.Service:
		s.Services = append(s.Services, o)
	case *autoscalingv2.HorizontalPodAutoscaler:
		s.Autoscalers = append(s.Autoscalers, o)
	case *autoscalingv1.HorizontalPodAutoscaler: // it can follow nothing else than the share of CPU requests
		s.Autoscalers = append(s.Autoscalers, &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: o.ObjectMeta,
			Spec: autoscalingv2.HorizontalPodAutoscalerSpec{ScaleTargetRef: autoscalingv2.CrossVersionObjectReference(o.Spec.ScaleTargetRef)}})
	case *v1alpha1.TemperNode:
		s.TemperNodes = append(s.TemperNodes, o)
	case *v1alpha1.TierPolicy:
		s.TierPolicies = append(slices.DeleteFunc(s.TierPolicies, func(p *v1alpha1.TierPolicy) bool { return p.Name == o.Name }), o)
	case *corev1.LimitRange:
		r.limited = true
	default:
		return r.placeWorkload(object)
	}
	return true
}

// namespaced is whether objects of this kind are in a namespace, of those that have one and may leave it out.
func namespaced(object runtime.Object) bool {
	switch object.(type) {
	case *corev1.Node, *corev1.Namespace, *schedulingv1.PriorityClass, *corev1.PersistentVolume, *storagev1.StorageClass, *storagev1.CSINode,
		*storagev1.VolumeAttachment, *v1alpha1.TemperNode, *v1alpha1.TierPolicy:
		return false
	}
	return true
}

func (r *reader) placeWorkload(object runtime.Object) bool {
	add := func(kind string, o metav1.Object, template corev1.PodTemplateSpec, replicas *int32) {
		count := int32(1)
		if replicas != nil {
			count = *replicas
		}
		r.workloads = append(r.workloads, workload{snapshot.Workload{Namespace: o.GetNamespace(), Kind: kind, Name: o.GetName()}, template, count, metav1.GetControllerOf(o) != nil})
	}
	switch o := object.(type) {
	case *appsv1.Deployment:
		add("Deployment", o, o.Spec.Template, o.Spec.Replicas)
	case *appsv1.ReplicaSet:
		r.ReplicaSets = append(r.ReplicaSets, o)
		add("ReplicaSet", o, o.Spec.Template, o.Spec.Replicas)
	case *appsv1.StatefulSet:
		r.StatefulSets = append(r.StatefulSets, o)
		add("StatefulSet", o, o.Spec.Template, o.Spec.Replicas)
	case *corev1.ReplicationController:
		r.ReplicationControllers = append(r.ReplicationControllers, o)
		if o.Spec.Template != nil {
			add("ReplicationController", o, *o.Spec.Template, o.Spec.Replicas)
		}
	case *appsv1.DaemonSet:
		add("DaemonSet", o, o.Spec.Template, nil)
	case *batchv1.Job:
		add("Job", o, o.Spec.Template, o.Spec.Parallelism)
	case *batchv1.CronJob:
		add("CronJob", o, o.Spec.JobTemplate.Spec.Template, o.Spec.JobTemplate.Spec.Parallelism)
	default:
		return false
	}
	return true
}

// finish does to what was read what a cluster would have done.
func (r *reader) finish(now time.Time) error {
	for _, node := range r.Nodes {
		if node.Status.Allocatable.Cpu().IsZero() {
			return fmt.Errorf("node %s has no status.allocatable: take nodes out of a cluster, by 'kubectl get nodes -o yaml'", node.Name)
		}
	}
	r.leaveOut()
	if len(r.TierPolicies) == 0 {
		if err := r.standIn(); err != nil {
			return err
		}
	}
	r.makePods()
	for i, pod := range r.Pods {
		r.admit(pod)
		if pod.UID == "" {
			pod.UID = types.UID(fmt.Sprintf("of-manifest-%d", i))
		}
		slim(pod)
	}
	r.dropStrays("no file has those nodes, so the pods count as pending", false)
	for _, kind := range slices.Sorted(maps.Keys(r.others)) {
		r.note("left alone: %d of %s", r.others[kind], kind)
	}
	if r.limited {
		r.note("what LimitRanges would give to pods is not known here")
	}
	if len(r.Pods) == 0 {
		return errors.New("there is nothing in the files that makes pods")
	}
	r.applyVertical(now)
	return nil
}

// makePods makes the pods of workloads of which the files have none. Those of a DaemonSet get the node that they belong to.
func (r *reader) makePods() {
	made := map[snapshot.Workload]bool{}
	of := r.Workloads()
	for _, pod := range r.Pods {
		made[of(pod)] = true
	}
	for _, w := range r.workloads {
		switch {
		case w.made || made[w.Workload]:
		case w.Kind == "DaemonSet" && len(r.Nodes) > 0:
			for _, node := range r.Nodes {
				r.makePod(w, node.Name, node.Name)
			}
		default:
			for i := range w.replicas {
				r.makePod(w, fmt.Sprint(i), "")
			}
		}
	}
}

func (r *reader) makePod(w workload, suffix, node string) {
	pod := &corev1.Pod{ObjectMeta: *w.template.ObjectMeta.DeepCopy(), Spec: *w.template.Spec.DeepCopy()}
	pod.Namespace, pod.Name = w.Namespace, w.Name+"-"+suffix
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: w.Kind, Name: w.Name, UID: types.UID(w.Kind + "/" + w.Name), Controller: new(true)}}
	pod.Spec.NodeName = node
	pod.Status.Phase = corev1.PodPending
	r.Pods = append(r.Pods, pod)
}

// admit does to a pod what the API server does as it is made.
func (r *reader) admit(pod *corev1.Pod) {
	manifest.DefaultRequests(&pod.Spec)
	if pod.Spec.Priority != nil {
		return
	}
	if value, ok := policy.BuiltInPriority(pod.Spec.PriorityClassName); ok {
		pod.Spec.Priority = &value
		return
	}
	if pod.Spec.PriorityClassName == "" {
		pod.Spec.Priority = new(int32)
		for _, c := range r.PriorityClasses {
			if c.GlobalDefault {
				pod.Spec.PriorityClassName, pod.Spec.Priority = c.Name, &c.Value
			}
		}
		return
	}
	if c := r.class(pod.Spec.PriorityClassName); c != nil {
		pod.Spec.Priority = &c.Value
	}
}
