package nodepods

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"temper.dev/temper/api/v1alpha1"
)

// A static pod's mirror in the API server has another UID than the kubelet's cgroup; its hash is what they share.
const (
	mirrorAnnotation = corev1.MirrorPodAnnotationKey
	hashAnnotation   = "kubernetes.io/config.hash"
)

// trimPod keeps of a pod what its tier depends on: a node's pods may have megabytes of environment and status.
func trimPod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok { // the last state of one whose deletion was missed
		return object, nil
	}
	trimmed := &corev1.Pod{
		ObjectMeta: trimmedMeta(&pod.ObjectMeta),
		Spec: corev1.PodSpec{
			NodeName: pod.Spec.NodeName, Priority: pod.Spec.Priority, PriorityClassName: pod.Spec.PriorityClassName,
			Containers: resourcesOf(pod.Spec.Containers), InitContainers: resourcesOf(pod.Spec.InitContainers),
			Resources: pod.Spec.Resources, Overhead: pod.Spec.Overhead,
		},
		Status: corev1.PodStatus{Phase: trimPhase(pod), QOSClass: pod.Status.QOSClass},
	}
	return trimmed, nil
}

// trimPhase keeps of a phase whether the pod has ended, or runs and is to go on.
func trimPhase(pod *corev1.Pod) corev1.PodPhase {
	if phase := pod.Status.Phase; ended(phase) || phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
		return phase
	}
	return ""
}

func ended(phase corev1.PodPhase) bool {
	return phase == corev1.PodSucceeded || phase == corev1.PodFailed
}

func trimMetadata(object any) (any, error) {
	partial, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	return &metav1.PartialObjectMetadata{TypeMeta: partial.TypeMeta, ObjectMeta: trimmedMeta(&partial.ObjectMeta)}, nil
}

// trimmedMeta keeps names and labels, of owners the controller, and of annotations those that name a static pod.
func trimmedMeta(from *metav1.ObjectMeta) metav1.ObjectMeta {
	to := metav1.ObjectMeta{Namespace: from.Namespace, Name: from.Name, UID: from.UID, ResourceVersion: from.ResourceVersion,
		Generation: from.Generation, CreationTimestamp: from.CreationTimestamp, Labels: from.Labels}
	if owner := metav1.GetControllerOfNoCopy(from); owner != nil {
		to.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	for _, key := range []string{mirrorAnnotation, hashAnnotation} {
		if value, ok := from.Annotations[key]; ok && len(value) <= longestID {
			metav1.SetMetaDataAnnotation(&to, key, value)
		}
	}
	return to
}

func resourcesOf(containers []corev1.Container) []corev1.Container {
	var trimmed []corev1.Container
	for _, c := range containers {
		trimmed = append(trimmed, corev1.Container{Name: c.Name, Resources: c.Resources, RestartPolicy: c.RestartPolicy})
	}
	return trimmed
}

// idOf is what the kubelet calls a pod: its UID, or a static pod's hash.
func idOf(pod *corev1.Pod) (id string, static bool) {
	hash := pod.Annotations[hashAnnotation]
	if _, mirror := pod.Annotations[mirrorAnnotation]; mirror && isID(hash) {
		return hash, true
	}
	return string(pod.UID), false
}

// safeModeAsked is whether a node's label asks for safe mode. Whoever types anything but false in a hurry means it.
func safeModeAsked(labels map[string]string) bool {
	value, asked := labels[v1alpha1.SafeModeLabel]
	return asked && value != "false"
}
