//go:build kubernetes

// Package kubernetes tests what Temper adds to a cluster, in a real API server with a real etcd.
package kubernetes

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/capacity/collect"
)

const (
	root      = "../.."
	manifests = root + "/packaging/kubernetes"
)

// How long the API server may take to follow what was changed.
const patience = 2 * time.Minute

var (
	server  = apiServer()
	cluster client.Client
)

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	log.SetLogger(logr.Discard()) // what fails is returned, too
	server.CRDDirectoryPaths = []string{manifests + "/crds"}
	config, err := server.Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, "the API server does not start; 'make kubernetes' builds it:", err)
		return 1
	}
	defer server.Stop()
	config.QPS = -1 // as many requests at a time as a test makes
	if cluster, err = client.New(config, client.Options{Scheme: collect.Scheme(discoveryv1.AddToScheme, rbacv1.AddToScheme)}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	// Where pods of tests may be in any tier, and are none of the cluster's own.
	home := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "home", Labels: map[string]string{v1alpha1.HighestTierLabel: "system"}}}
	if err := cluster.Create(context.Background(), home); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for _, name := range []string{"namespace.yaml", "priorityclasses.yaml", "tierpolicy.yaml", "admission.yaml", "agent-rbac.yaml"} {
		if err := apply(filepath.Join(manifests, name)); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
			return 1
		}
	}
	return m.Run()
}

// apiServer is one that was not started, of the programs in the folder that TEMPER_KUBERNETES names.
func apiServer() *envtest.Environment {
	programs := os.Getenv("TEMPER_KUBERNETES")
	const start = 2 * time.Minute // on a host that has other things to do, too
	e := &envtest.Environment{ErrorIfCRDPathMissing: true, ControlPlaneStartTimeout: start}
	e.ControlPlane.GetAPIServer().Path = filepath.Join(programs, "kube-apiserver")
	e.ControlPlane.Etcd = &envtest.Etcd{Path: filepath.Join(programs, "etcd"), StartTimeout: start}
	return e
}

// objects are what a file holds.
func objects(file string) ([]*unstructured.Unstructured, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var list []*unstructured.Unstructured
	for decoder := utilyaml.NewYAMLOrJSONDecoder(f, 4096); ; {
		var object unstructured.Unstructured
		if err := decoder.Decode(&object.Object); err == io.EOF {
			return list, nil
		} else if err != nil {
			return nil, err
		}
		list = append(list, &object)
	}
}

// apply makes what a file holds.
func apply(file string) error {
	list, err := objects(file)
	if err != nil {
		return err
	}
	for _, object := range list {
		if err := cluster.Create(context.Background(), object); err != nil {
			return err
		}
	}
	return nil
}

func create(t *testing.T, object client.Object) {
	t.Helper()
	if err := cluster.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// At once: no kubelet is there to say that a pod has ended.
		if err := cluster.Delete(context.Background(), object, client.GracePeriodSeconds(0)); err != nil {
			t.Error(err)
		}
	})
}

// namespace makes one, which stays: only a controller that does not run here could remove it.
func namespace(t *testing.T, name string, labels map[string]string) {
	t.Helper()
	if err := cluster.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}); err != nil {
		t.Fatal(err)
	}
}

func class(t *testing.T, name string, value int32) {
	t.Helper()
	create(t, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value})
}

func podOf(namespace, name, class string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.PodSpec{PriorityClassName: class, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
}

// tryOut says what the API server would say to a pod, without making it. A connection that breaks on a busy machine says nothing.
func tryOut(t *testing.T, pod *corev1.Pod) (err error) {
	t.Helper()
	for range 10 {
		err = cluster.Create(t.Context(), pod.DeepCopy(), client.DryRunAll)
		if err == nil || apierrors.ReasonForError(err) != metav1.StatusReasonUnknown {
			return err
		}
		t.Log("no answer:", err)
	}
	t.Fatal("the API server does not answer")
	return nil
}

// eventually awaits what the API server does a moment after it was told to.
func eventually(t *testing.T, what string, reached func() bool) {
	t.Helper()
	patiently(t, what, patience, reached)
}

// patiently is eventually for what takes its time.
func patiently(t *testing.T, what string, within time.Duration, reached func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, within, true, func(context.Context) (bool, error) { return reached(), nil })
	if err != nil {
		t.Fatalf("%s: not within %v", what, within)
	}
}
