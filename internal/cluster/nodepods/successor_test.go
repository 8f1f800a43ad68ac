package nodepods

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// An agent hands over where its DaemonSet's controller would put another, and nowhere else.
func TestPlaced(t *testing.T) {
	anywhere := corev1.PodSpec{Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}}
	selecting := corev1.PodSpec{NodeSelector: map[string]string{"pool": "latency"}}
	affine := corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "pool", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"batch"}}},
		}}},
	}}}
	taint := func(key string, effect corev1.TaintEffect) []corev1.Taint {
		return []corev1.Taint{{Key: key, Effect: effect}}
	}
	for _, c := range []struct {
		name   string
		spec   corev1.PodSpec
		pool   string
		taints []corev1.Taint
		want   bool
	}{
		{name: "anywhere", spec: anywhere, taints: taint("gpu", corev1.TaintEffectNoExecute), want: true},
		{name: "selected", spec: selecting, pool: "latency", want: true},
		{name: "not selected any more", spec: selecting, pool: "batch"},
		{name: "by affinity", spec: affine, pool: "latency", want: true},
		{name: "kept away by affinity", spec: affine, pool: "batch"},
		{name: "a taint that evicts", spec: corev1.PodSpec{}, taints: taint("gpu", corev1.TaintEffectNoExecute)},
		{name: "a taint that lets nobody come", spec: corev1.PodSpec{}, taints: taint("gpu", corev1.TaintEffectNoSchedule)},
		{name: "a taint that says what would be better", spec: corev1.PodSpec{}, taints: taint("gpu", corev1.TaintEffectPreferNoSchedule), want: true},
		{name: "cordoned", spec: corev1.PodSpec{}, taints: taint(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule), want: true},
		{name: "a kubelet that does not answer", spec: corev1.PodSpec{}, taints: taint(corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute), want: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			set := &appsv1.DaemonSet{Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{Spec: c.spec}}}
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"pool": c.pool}}, Spec: corev1.NodeSpec{Taints: c.taints}}
			if got, why := placed(set, node); got != c.want {
				t.Errorf("got %v (%s), want %v", got, why, c.want)
			}
		})
	}
}

func TestADaemonSetHasANamespace(t *testing.T) {
	for _, name := range []string{"", "temper-agent", "/temper-agent", "temper-system/", "a/b/c"} {
		if _, err := NewSuccessor(&rest.Config{}, name, "n"); err == nil {
			t.Errorf("%q is taken", name)
		}
	}
}
