//go:build kubernetes

package kubernetes

import (
	"context"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// shipped are the objects of a kind that a file has.
func shipped(t *testing.T, file, kind string) []*unstructured.Unstructured {
	t.Helper()
	list, err := objects(filepath.Join(manifests, file))
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(list, func(o *unstructured.Unstructured) bool { return o.GetKind() != kind })
}

// agents makes the shipped DaemonSet, which nobody runs here, in a namespace, and with another selector of nodes.
func agents(t *testing.T, namespace string, selector map[string]string) *appsv1.DaemonSet {
	t.Helper()
	set := &appsv1.DaemonSet{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(shipped(t, "agent.yaml", "DaemonSet")[0].Object, set); err != nil {
		t.Fatal(err)
	}
	set.Namespace, set.Spec.Template.Spec.NodeSelector = namespace, selector
	if err := cluster.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Delete(context.Background(), set); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
	return set
}

// An agent that is asked to end leaves everything in force for the next, if there will be one, and nothing if not.
func TestAskedToEnd(t *testing.T) {
	n := newNode(t, map[string]string{"pool": "latency"})
	_, batch := n.run("batch", "", "/kubepods/besteffort")
	// ended starts an agent, awaits that it keeps a tier in force, asks it to end, and says whether it has left that so.
	in := "temper-system"
	ended := func(kubeconfig []byte, change func()) bool {
		t.Helper()
		n.end(syscall.SIGKILL)
		n.start(kubeconfig, "--daemonset", in+"/temper-agent")
		eventually(t, "the pod is in background", func() bool {
			s := n.state()
			return s.PID == n.cmd.Process.Pid && s.Rung == "cpu.idle" && n.idle(batch) == "1"
		})
		change()
		n.end(syscall.SIGTERM)
		return n.idle(batch) == "1"
	}
	mine, nothing := asAgent(t, n.name), func() {}
	update := func(object client.Object) {
		t.Helper()
		if err := cluster.Update(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}

	if ended(mine, nothing) {
		t.Error("no DaemonSet: not undone")
	}
	set := agents(t, in, map[string]string{"pool": "latency"})
	if !ended(mine, nothing) {
		t.Error("an upgrade: not handed over")
	}
	if s := n.state(); s.PID != 0 || s.Rung != "cpu.idle" {
		t.Errorf("%+v", s)
	}
	if !ended(unanswered(t, n.name), nothing) {
		t.Error("an API server that is away: not handed over")
	}

	var object corev1.Node
	if err := cluster.Get(t.Context(), client.ObjectKey{Name: n.name}, &object); err != nil {
		t.Fatal(err)
	}
	label := func(pool string) func() {
		return func() {
			object.Labels["pool"] = pool
			update(&object)
		}
	}
	if ended(mine, label("other")) {
		t.Error("a node that the DaemonSet does not select any more: not undone")
	}
	label("latency")()

	// Its rights go with the DaemonSet, and may go first.
	binding := shipped(t, "agent-rbac.yaml", "RoleBinding")[0]
	if ended(mine, func() {
		if err := cluster.Delete(t.Context(), binding); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the agent may not read its DaemonSet", func() bool { return !mayReadDaemonSet(t, mine) })
	}) {
		t.Error("no rights: not undone")
	}
	if err := cluster.Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the agent may read its DaemonSet", func() bool { return mayReadDaemonSet(t, mine) })

	// Foreground deletion: the DaemonSet stays until its pods have gone.
	set.Finalizers = []string{"temper.dev/test"}
	update(set)
	if ended(mine, func() {
		if err := cluster.Delete(t.Context(), set); err != nil {
			t.Fatal(err)
		}
	}) {
		t.Error("a DaemonSet that is being deleted: not undone")
	}
	if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
		t.Fatal(err)
	}
	set.Finalizers = nil
	update(set)

	// A namespace that is being deleted loses its pods first.
	in = "leaving"
	namespace(t, in, nil)
	for _, kind := range []string{"Role", "RoleBinding"} {
		object := shipped(t, "agent-rbac.yaml", kind)[0]
		object.SetNamespace(in)
		if err := cluster.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	agents(t, in, nil)
	if !ended(mine, nothing) {
		t.Error("another namespace: not handed over")
	}
	if ended(mine, func() {
		if err := cluster.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: in}}); err != nil {
			t.Fatal(err)
		}
	}) {
		t.Error("a namespace that is being deleted: not undone")
	}
}

func mayReadDaemonSet(t *testing.T, kubeconfig []byte) bool {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	asking, err := client.New(config, client.Options{Scheme: cluster.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	err = asking.Get(t.Context(), client.ObjectKey{Namespace: "temper-system", Name: "temper-agent"}, &appsv1.DaemonSet{})
	if err != nil && !apierrors.IsForbidden(err) {
		t.Fatal(err)
	}
	return err == nil
}
