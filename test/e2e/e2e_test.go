//go:build e2e

// Package e2e tests Temper on a node with a real containerd and a real kubelet, in a virtual machine.
package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/cluster/bugtool"
)

var (
	programs  = flag.String("programs", "../../build/kubernetes", "`FOLDER` of what 'make kubernetes-node' builds")
	images    = flag.String("images", "../../build/images", "`FOLDER` of what 'make images' builds")
	imageTool = flag.String("image-tool", "../../build/images/image", "`PROGRAM` of tools/image")
	fetch     = flag.Bool("fetch", false, "only fetch what the node is made of: in the test's network namespace nothing is reached")
	systemd   = flag.Bool("systemd", false, "the node's first process is systemd, which makes all cgroups")
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
		if _, err := fetchParts(context.Background()); err != nil {
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
	defer func() { machine.end() }() // the one that runs then
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

// install installs the chart by the start page's line, and tells the agents where the API server is: no kube-proxy runs here. On a busy host a
// node this slow takes up to a minute to start a container again.
func install() error {
	api := plane.ControlPlane.GetAPIServer().SecureServing
	command, err := pageCommand("helm install temper charts/temper")
	if err != nil {
		return err
	}
	args := append(strings.Fields(command)[1:], "--kubeconfig", plane.kubeconfig,
		"--set", "heartbeatTimeoutSeconds=300,apiServer.host="+api.Address+",apiServer.port="+api.Port)
	return build(context.Background(), repository, filepath.Join(*programs, "helm"), args...)
}

// release is the namespace that Temper is installed in.
const release = "temper-system"

// helm runs a command of Helm for the release.
func helm(ctx context.Context, command string, args ...string) error {
	args = append([]string{command, "temper", "--namespace", release, "--kubeconfig", plane.kubeconfig}, args...)
	return build(ctx, "", filepath.Join(*programs, "helm"), args...)
}

func ignore(err error, passing ...func(error) bool) error {
	if err == nil || slices.ContainsFunc(passing, func(is func(error) bool) bool { return is(err) }) {
		return nil
	}
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
const patience = 5 * time.Minute

// eventually awaits what others do.
func eventually(t *testing.T, what string, reached func() (bool, string)) {
	t.Helper()
	await(t, what, 50*time.Millisecond, reached)
}

// onNode awaits what others do, asking the node itself. An answer keeps its CPUs busy, and so its clock all but stops; it
// has to go on between two.
func onNode(t *testing.T, what string, reached func() (bool, string)) {
	t.Helper()
	await(t, what, time.Second, reached)
}

func await(t *testing.T, what string, pause time.Duration, reached func() (bool, string)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for started := time.Now(); ; {
		done, last := reached()
		if done {
			t.Logf("%s after %.1f s", what, time.Since(started).Seconds())
			return
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			console, _ := os.ReadFile(machine.console)
			t.Fatalf("%s: not within %v: %s\nthe node's console:\n%s", what, patience, last, console)
		}
	}
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

// awaitReady awaits that the kubelet is ready, or says that it is not.
func awaitReady(t *testing.T, want corev1.ConditionStatus) {
	t.Helper()
	eventually(t, fmt.Sprintf("the kubelet's Ready is %s", want), func() (bool, string) {
		var n corev1.Node
		if err := get(t, &n, "", nodeName); err != nil {
			return false, err.Error()
		}
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady {
				return c.Status == want, c.Message
			}
		}
		return false, "no condition yet"
	})
}

// awaitTier awaits that the agent reports a pod in a tier.
func awaitTier(t *testing.T, pod *corev1.Pod, tier v1alpha1.Tier) {
	t.Helper()
	name := client.ObjectKeyFromObject(pod).String()
	eventually(t, name+" is "+string(tier), func() (bool, string) {
		for _, s := range status(t).Tiers {
			if s.Tier == tier {
				return slices.Contains(s.Pods, name), strings.Join(s.Pods, " ")
			}
		}
		return false, "no such tier yet"
	})
}

func TestNodeIsReady(t *testing.T) { awaitReady(t, corev1.ConditionTrue) }

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

// A container that names no profile has the runtime's own, under which the agent could not pin the scheduler: that it
// enforces is then the chart's doing.
func TestContainersAreConfined(t *testing.T) {
	const want = "cri-containerd.apparmor.d (enforce)"
	pod := runPod(t, podOf("default", "confined", forever))
	out, err := execute(t, pod.Namespace, pod.Name, "/busybox", "cat", "/proc/self/attr/current")
	if got := strings.TrimSpace(out); err != nil || got != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}

// A report has what the agent said, which takes a kubelet.
func TestBugtool(t *testing.T) {
	bundle, err := bugtool.Collect(t.Context(), plane.Config, []string{nodeName})
	if err != nil {
		t.Fatal(err)
	}
	if len(bundle.Faults) > 0 {
		t.Errorf("%v", bundle.Faults)
	}
	logs := slices.DeleteFunc(bundle.Names(), func(name string) bool { return !strings.HasPrefix(name, "logs/"+nodeName+"/temper-agent-") })
	if len(logs) != 1 || !strings.Contains(string(bundle.Files[logs[0]]), "rung scx") {
		t.Errorf("%v", bundle.Names())
	}
}
