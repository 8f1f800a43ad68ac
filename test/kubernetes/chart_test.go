//go:build kubernetes

package kubernetes

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/cluster/explain"
)

// chart is a cluster of its own, where Helm is at work.
type chart struct {
	t          *testing.T
	cluster    client.Client
	kubeconfig string
	home       string
}

func newChart(t *testing.T) *chart {
	t.Helper()
	own := apiServer()
	config, err := own.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := own.Stop(); err != nil {
			t.Error(err)
		}
	})
	c := &chart{t: t, home: t.TempDir()}
	if c.cluster, err = client.New(config, client.Options{Scheme: explain.Scheme()}); err != nil {
		t.Fatal(err)
	}
	c.kubeconfig = filepath.Join(c.home, "kubeconfig")
	if err := os.WriteFile(c.kubeconfig, own.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	return c
}

// try runs a command of Helm for the release.
func (c *chart) try(command string, args ...string) (string, error) {
	args = append([]string{command, "temper"}, args...)
	cmd := exec.CommandContext(c.t.Context(), filepath.Join(os.Getenv("TEMPER_KUBERNETES"), "helm"), append(args, "--namespace", "temper-system")...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig, "HELM_CACHE_HOME="+c.home, "HELM_CONFIG_HOME="+c.home, "HELM_DATA_HOME="+c.home)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (c *chart) helm(command string, args ...string) string {
	c.t.Helper()
	out, err := c.try(command, args...)
	if err != nil {
		c.t.Fatalf("helm %s: %v: %s", command, err, out)
	}
	return out
}

const chartFolder = root + "/charts/temper"

// manifested are the objects of packaging/kubernetes; its namespace is Helm's to make, and to leave.
func manifested(t *testing.T, pattern string) (list []*unstructured.Unstructured) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(manifests, pattern))
	for _, file := range files {
		if base := filepath.Base(file); base == "kustomization.yaml" || base == "namespace.yaml" {
			continue
		}
		some, err := objects(file)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, some...)
	}
	if len(list) == 0 {
		t.Fatalf("no manifests in %s", pattern)
	}
	return list
}

// live is what the API server has of an object.
func (c *chart) live(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(object.GroupVersionKind())
	return found, c.cluster.Get(c.t.Context(), client.ObjectKeyFromObject(object), found)
}

// asManifested fails where an object is not as packaging/kubernetes has it, but for what the API server adds.
func (c *chart) asManifested() {
	c.t.Helper()
	for _, want := range append(manifested(c.t, "crds/*.yaml"), manifested(c.t, "*.yaml")...) {
		if got, err := c.live(want); err != nil {
			c.t.Error(err)
		} else if path := missing(plain(c.t, got), plain(c.t, want)); path != "" {
			c.t.Errorf("%s %s: %s is not as in packaging/kubernetes", want.GetKind(), want.GetName(), path)
		}
	}
}

// plain is an object as JSON has it, where numbers are of one kind.
func plain(t *testing.T, object *unstructured.Unstructured) (value any) {
	t.Helper()
	text, err := object.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(text, &value)
	}
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// missing is the path of a part of want that got does not have; "" if it has all.
func missing(got, want any) string {
	switch want := want.(type) {
	case map[string]any:
		got, _ := got.(map[string]any)
		for name, inner := range want {
			if path := missing(got[name], inner); path != "" {
				return "." + name + path
			}
		}
		return ""
	case []any:
		got, ok := got.([]any)
		if !ok || len(got) != len(want) {
			return "[]"
		}
		for i := range want {
			if path := missing(got[i], want[i]); path != "" {
				return "[]" + path
			}
		}
		return ""
	}
	if got != want {
		return fmt.Sprintf(": %v, not %v,", got, want)
	}
	return ""
}

// A release is what packaging/kubernetes has; an upgrade changes what its values say, and back; what was removed has gone,
// but for what belongs to the cluster's operators, and what workloads name.
func TestChart(t *testing.T) {
	c := newChart(t)
	if out := c.helm("install", chartFolder, "--create-namespace"); !strings.Contains(out, "kubectl temper status") {
		t.Errorf("Helm says\n%s", out)
	}
	c.asManifested()
	var set appsv1.DaemonSet
	agents := client.ObjectKey{Namespace: "temper-system", Name: "temper-agent"}
	get := func() *appsv1.DaemonSet {
		t.Helper()
		if err := c.cluster.Get(t.Context(), agents, &set); err != nil {
			t.Fatal(err)
		}
		return &set
	}
	installed := get().Generation

	c.helm("upgrade", chartFolder, "--values", "testdata/values.yaml")
	for _, text := range []string{"example.org/temper:v2", "--heartbeat-timeout=120s", "--metrics=127.0.0.1:9770", "--safe-mode", "10.99.0.1", "registry-account", "gpu", "25%"} {
		if spec := get().Spec; !strings.Contains(spec.String(), text) {
			t.Errorf("no %q in %s", text, spec.String())
		}
	}
	// The agents, of Kubernetes' own class, are not kept from starting.
	refused := func(namespace string) bool {
		pod := podOf(namespace, "p", "system-node-critical")
		return c.cluster.Create(t.Context(), pod, client.DryRunAll) != nil
	}
	eventually(t, "a pod of Kubernetes' own class is refused", func() bool { return refused("default") })
	if refused(agents.Namespace) {
		t.Error("the agents' pods are refused")
	}
	changed := set.Generation
	if changed == installed {
		t.Error("the upgrade has changed nothing")
	}
	if out, err := c.try("upgrade", chartFolder, "--set", "heartbeatTimeoutSeconds=1"); err == nil || !strings.Contains(out, "minimum: got 1, want 2") {
		t.Errorf("a wrong value: %v: %s", err, out)
	}
	if get().Generation != changed {
		t.Error("a refused upgrade has changed something")
	}
	c.helm("upgrade", chartFolder, "--reset-values")
	c.asManifested()

	own := &v1alpha1.TierPolicy{ObjectMeta: metav1.ObjectMeta{Name: "own"}, Spec: v1alpha1.TierPolicySpec{Rules: []v1alpha1.TierRule{{Name: "r", PriorityClassNames: []string{"web"}, Tier: "critical"}}}}
	if err := c.cluster.Create(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	c.helm("uninstall")
	for _, object := range manifested(t, "*.yaml") {
		_, err := c.live(object)
		if object.GetKind() == "PriorityClass" {
			if err != nil {
				t.Errorf("pods may name it: %v", err)
			}
		} else if !apierrors.IsNotFound(err) {
			t.Errorf("%s %s is left: %v", object.GetKind(), object.GetName(), err)
		}
	}
	for _, class := range []string{"temper-critical", "temper-background"} {
		if err := c.cluster.Create(t.Context(), podOf("kube-system", "p", class), client.DryRunAll); err != nil {
			t.Errorf("a workload of class %s cannot make its pods: %v", class, err)
		}
	}
	if err := c.cluster.Get(t.Context(), client.ObjectKeyFromObject(own), own); err != nil {
		t.Errorf("the operator's own policy: %v", err)
	}
	c.helm("install", chartFolder)
	c.asManifested()
}
