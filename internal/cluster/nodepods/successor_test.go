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
		what   string
		spec   corev1.PodSpec
		pool   string
		taints []corev1.Taint
		want   bool
	}{
		{"anywhere", anywhere, "", taint("gpu", corev1.TaintEffectNoExecute), true},
		{"selected", selecting, "latency", nil, true},
		{"not selected any more", selecting, "batch", nil, false},
		{"by affinity", affine, "latency", nil, true},
		{"kept away by affinity", affine, "batch", nil, false},
		{"a taint that evicts", corev1.PodSpec{}, "", taint("gpu", corev1.TaintEffectNoExecute), false},
		{"a taint that lets nobody come", corev1.PodSpec{}, "", taint("gpu", corev1.TaintEffectNoSchedule), false},
		{"a taint that says what would be better", corev1.PodSpec{}, "", taint("gpu", corev1.TaintEffectPreferNoSchedule), true},
		{"cordoned", corev1.PodSpec{}, "", taint(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule), true},
		{"a kubelet that does not answer", corev1.PodSpec{}, "", taint(corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute), true},
	} {
		set := &appsv1.DaemonSet{Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{Spec: c.spec}}}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"pool": c.pool}}, Spec: corev1.NodeSpec{Taints: c.taints}}
		if got, why := placed(set, node); got != c.want {
			t.Errorf("%s: %v, %s", c.what, got, why)
		}
	}
}

func TestADaemonSetHasANamespace(t *testing.T) {
	for _, name := range []string{"", "temper-agent", "/temper-agent", "temper-system/", "a/b/c"} {
		if _, err := NewSuccessor(&rest.Config{}, name, "n"); err == nil {
			t.Errorf("%q is taken", name)
		}
	}
}
