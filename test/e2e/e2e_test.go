//go:build e2e

// Package e2e tests Temper on a node with a real containerd and a real kubelet, in a virtual machine.
package e2e

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"temper.dev/temper/api/v1alpha1"
)

var (
	programs  = flag.String("programs", "../../build/kubernetes", "`FOLDER` of what 'make kubernetes-node' builds")
	images    = flag.String("images", "../../build/images", "`FOLDER` of what 'make images' builds")
	imageTool = flag.String("image-tool", "../../build/images/image", "`PROGRAM` of tools/image")
	fetch     = flag.Bool("fetch", false, "only fetch what the node is made of: in the test's network namespace nothing is reached")
	keep      = flag.String("keep", "../../build/e2e", "`FOLDER` for the node's disk, and for what all programs said")
)

var (
	plane   *controlPlane
	cluster client.Client
	machine *node
)

func TestMain(m *testing.M) {
	flag.Parse()
	if *fetch {
		if _, err := parts(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	log.SetLogger(logr.Discard()) // what fails is returned, too
	if err := prepare(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer plane.stop()
	if err := boot(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer machine.end()
	return m.Run()
}

// prepare starts a cluster and installs Temper in it, as docs/kubernetes.md says.
func prepare() (err error) {
	if err := errors.Join(os.RemoveAll(*keep), os.MkdirAll(*keep, 0o755)); err != nil {
		return err
	}
	for _, path := range []*string{programs, images, imageTool, keep} {
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	if plane, err = startControlPlane(*programs, *keep); err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return err
	}
	if cluster, err = client.New(plane.Config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	return install()
}

const manifests = "../../packaging/kubernetes"

// objects are what a cluster with Temper has, in the order in which they are made.
func objects() ([]*unstructured.Unstructured, error) {
	crds, _ := filepath.Glob(manifests + "/crds/*.yaml")
	rest, _ := filepath.Glob(manifests + "/*.yaml")
	var list []*unstructured.Unstructured
	for _, file := range slices.Concat(crds, rest) {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096); ; {
			var object unstructured.Unstructured
			if err := decoder.Decode(&object.Object); err == io.EOF {
				break
			} else if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			list = append(list, &object)
		}
	}
	return list, nil
}

// install makes them. A kind that was defined a moment ago takes another to be known.
func install() error {
	list, err := objects()
	if err != nil {
		return err
	}
	for _, object := range list {
		if object.GetKind() == "DaemonSet" {
			if err := adapt(object); err != nil {
				return err
			}
		}
		err := wait.PollUntilContextTimeout(context.Background(), 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
			err := cluster.Create(ctx, object)
			return err == nil, ignore(err, meta.IsNoMatchError, apierrors.IsNotFound)
		})
		if err != nil {
			return fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

// remove removes them, as 'kubectl delete' does: the agents' rights go with the agents, and first.
func remove(t *testing.T) {
	t.Helper()
	list, err := objects()
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range list {
		if slices.Contains([]string{"CustomResourceDefinition", "TierPolicy"}, object.GetKind()) { // without a policy the agents leave, too
			continue
		}
		if err := cluster.Delete(t.Context(), object, client.PropagationPolicy(metav1.DeletePropagationBackground)); client.IgnoreNotFound(err) != nil && !meta.IsNoMatchError(err) {
			t.Fatal(err)
		}
	}
}

func ignore(err error, passing ...func(error) bool) error {
	if err == nil || slices.ContainsFunc(passing, func(is func(error) bool) bool { return is(err) }) {
		return nil
	}
	return err
}

// adapt tells the agent where the API server is: no kube-proxy runs here.
func adapt(object *unstructured.Unstructured) error {
	var set appsv1.DaemonSet
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &set); err != nil {
		return err
	}
	api := plane.ControlPlane.GetAPIServer().SecureServing
	agent := &set.Spec.Template.Spec.Containers[0]
	agent.Env = append(agent.Env, corev1.EnvVar{Name: "KUBERNETES_SERVICE_HOST", Value: api.Address}, corev1.EnvVar{Name: "KUBERNETES_SERVICE_PORT", Value: api.Port})
	var err error
	object.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(&set)
	return err
}

func boot(ctx context.Context) error {
	kubeconfig, err := plane.node(nodeName)
	if err != nil {
		return err
	}
	machine, err = startNode(ctx, kubeconfig)
	return err
}

// patience is how long the cluster or the emulated node may take for anything, on a host that is busy.
const patience = 3 * time.Minute

// eventually awaits what others do.
func eventually(t *testing.T, what string, reached func() (bool, string)) {
	t.Helper()
	started := time.Now()
	last := ""
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, func(context.Context) (done bool, _ error) {
		done, last = reached()
		return done, nil
	})
	if err != nil {
		console, _ := os.ReadFile(machine.console)
		t.Fatalf("%s: not within %v: %s\nthe node's console:\n%s", what, patience, last, console)
	}
	t.Logf("%s after %.1f s", what, time.Since(started).Seconds())
}

func get(t *testing.T, object client.Object, namespace, name string) error {
	return cluster.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, object)
}

// status is what the node's agent reports; empty if it has not.
func status(t *testing.T) v1alpha1.TemperNodeStatus {
	t.Helper()
	var object v1alpha1.TemperNode
	if err := ignore(get(t, &object, "", nodeName), apierrors.IsNotFound); err != nil {
		t.Fatal(err)
	}
	return object.Status
}

func awaitEnforced(t *testing.T, want metav1.ConditionStatus) {
	t.Helper()
	eventually(t, fmt.Sprintf("Enforced is %s", want), func() (bool, string) {
		s := status(t)
		c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionEnforced)
		if c == nil {
			return false, "no condition yet"
		}
		return c.Status == want, fmt.Sprintf("%s: %s; %s", c.Reason, c.Message, strings.Join(s.Problems, "; "))
	})
}

func TestNodeIsReady(t *testing.T) {
	eventually(t, "the kubelet is ready", func() (bool, string) {
		var n corev1.Node
		if err := get(t, &n, "", nodeName); err != nil {
			return false, err.Error()
		}
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady {
				return c.Status == corev1.ConditionTrue, c.Message
			}
		}
		return false, "no condition yet"
	})
}

func TestAgentEnforces(t *testing.T) {
	awaitEnforced(t, metav1.ConditionTrue)
	s := status(t)
	for _, name := range []string{v1alpha1.ConditionLimitsHonoured, v1alpha1.ConditionSized} {
		if !meta.IsStatusConditionTrue(s.Conditions, name) {
			t.Errorf("%s is not true: %+v", name, s.Conditions)
		}
	}
	if len(s.Problems) > 0 || s.Policy != "default" {
		t.Errorf("%+v", s)
	}
}

func agents() *appsv1.DaemonSet {
	return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "temper-system", Name: "temper-agent"}}
}
