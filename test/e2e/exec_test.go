//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const image = "temper.dev/busybox:e2e"

// podOf is one of a container that runs a script.
func podOf(namespace, name, script string) *corev1.Pod {
	grace := int64(1) // nothing here has anything to put away
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: &grace,
			Containers:                    []corev1.Container{{Name: "main", Image: image, Command: []string{"/busybox", "sh", "-c", script}}},
		},
	}
}

const forever = "exec /busybox tail -f /dev/null"

// createPod makes a pod, which goes when the test ends.
func createPod(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	if err := cluster.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Delete(context.Background(), pod); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
}

// runPod makes a pod, which goes when the test ends, and awaits that it runs.
func runPod(t *testing.T, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	createPod(t, pod)
	awaitPhase(t, pod, corev1.PodRunning)
	return pod
}

func awaitPhase(t *testing.T, pod *corev1.Pod, phase corev1.PodPhase) {
	t.Helper()
	key := client.ObjectKeyFromObject(pod)
	eventually(t, fmt.Sprintf("%s is %s", key, phase), func() (bool, string) {
		if err := cluster.Get(t.Context(), key, pod); err != nil {
			return false, err.Error()
		}
		return pod.Status.Phase == phase, fmt.Sprintf("%+v", pod.Status.ContainerStatuses)
	})
}

// inCgroup is what the paths of a pod's cgroups have in common: systemd takes a dash for a level of its own.
func inCgroup(pod *corev1.Pod) string {
	if *systemd {
		return strings.ReplaceAll(string(pod.UID), "-", "_")
	}
	return string(pod.UID)
}

func newClients(t *testing.T) *kubernetes.Clientset {
	t.Helper()
	clients, err := kubernetes.NewForConfig(plane.Config)
	if err != nil {
		t.Fatal(err)
	}
	return clients
}

// logOf is what a pod's container has said since it was started.
func logOf(t *testing.T, namespace, name string) (string, error) {
	t.Helper()
	out, err := newClients(t).CoreV1().Pods(namespace).GetLogs(name, &corev1.PodLogOptions{}).DoRaw(t.Context())
	return string(out), err
}

// agentPod is the name of the pod of the node's agent.
func agentPod(t *testing.T) string {
	t.Helper()
	var pods corev1.PodList
	if err := cluster.List(t.Context(), &pods, client.InNamespace(release), client.MatchingLabels{"app.kubernetes.io/name": "temper-agent"}); err != nil {
		t.Fatal(err)
	}
	if len(pods.Items) != 1 {
		t.Fatalf("%d agents", len(pods.Items))
	}
	return pods.Items[0].Name
}

// execute runs a command in a container of a pod, as kubectl exec does, and returns what it printed.
func execute(t *testing.T, namespace, name string, command ...string) (string, error) {
	t.Helper()
	options := &corev1.PodExecOptions{Command: command, Stdout: true, Stderr: true}
	request := newClients(t).CoreV1().RESTClient().Get().Resource("pods").Namespace(namespace).Name(name).SubResource("exec").VersionedParams(options, scheme.ParameterCodec)
	session, err := remotecommand.NewWebSocketExecutor(plane.Config, "GET", request.URL().String())
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	err = session.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: &out, Stderr: &errs})
	if err != nil {
		return out.String(), fmt.Errorf("%s: %w: %s", strings.Join(command, " "), err, errs.String())
	}
	return out.String(), nil
}

// toolbox is a pod that sees all of the node, at /host.
type toolbox struct {
	t   *testing.T
	pod *corev1.Pod
}

func newToolbox(t *testing.T) *toolbox {
	t.Helper()
	pod := podOf("kube-system", "toolbox-"+strings.ToLower(t.Name()), forever)
	pod.Spec.HostPID, pod.Spec.HostNetwork = true, true
	pod.Spec.PriorityClassName = "system-node-critical" // an answer at full load, too
	seeNode(pod, "/", "/host")
	return &toolbox{t, runPod(t, pod)}
}

// seeNode lets a pod see a folder of the node, with all rights.
func seeNode(pod *corev1.Pod, folder, at string) {
	all, main := true, &pod.Spec.Containers[0]
	main.SecurityContext = &corev1.SecurityContext{Privileged: &all}
	main.VolumeMounts = []corev1.VolumeMount{{Name: "node", MountPath: at}}
	pod.Spec.Volumes = []corev1.Volume{{Name: "node", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: folder}}}}
}

// try runs a script beside the node's file system, with its programs.
func (b *toolbox) try(script string) (string, error) {
	b.t.Helper()
	out, err := execute(b.t, b.pod.Namespace, b.pod.Name, "/busybox", "sh", "-c", "PATH=/host/bin; "+script)
	return strings.TrimSpace(out), err
}

func (b *toolbox) sh(script string) string {
	b.t.Helper()
	out, err := b.try(script)
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

// await awaits that a script prints something. Nothing may answer meanwhile.
func (b *toolbox) await(script, want string) {
	b.t.Helper()
	onNode(b.t, script+" prints "+want, func() (bool, string) {
		out, err := b.try(script)
		return err == nil && out == want, fmt.Sprint(out, err)
	})
}

// idle is the node's time since it was booted, and for how long its CPUs were idle, all of them together, in seconds.
func (b *toolbox) idle() (up, idle float64) {
	b.t.Helper()
	text := b.sh("cat /proc/uptime")
	if _, err := fmt.Sscan(text, &up, &idle); err != nil {
		b.t.Fatalf("%q: %v", text, err)
	}
	return up, idle
}
