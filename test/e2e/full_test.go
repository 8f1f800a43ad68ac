//go:build e2e

package e2e

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/evidence/scale"
)

var records = flag.String("records", "", "`FOLDER` for the record of what exec takes on a full node")

// execMost is what somebody who looks into a pod of a full node waits at most, in seconds.
const execMost = 2

// While critical pods use all of the node, the kubelet answers, and renews its lease. What exec into a pod takes then is held
// to its bar, and told beside what it takes on an idle node; in a record, on a full one under the kernel's own scheduler, too. A
// pod that requests no CPU has next to no weight beside those that do, under both, and so has what is executed in it: that has
// no bar. A background pod has its turns only.
func TestFullOfCriticalWork(t *testing.T) {
	b := newToolbox(t)
	awaitEnforced(t, metav1.ConditionTrue)
	e := execs{system: b.pod, critical: criticalPod("critical", "100m", forever), light: criticalPod("light", "", forever)}
	runPod(t, e.critical)
	runPod(t, e.light)
	e.begin(t)
	e.measure(t, "idle", false)

	spin := criticalPod("spin", "1200m", "for i in 1 2 3 4; do while :; do :; done & done; wait")
	runPod(t, spin)
	began, idle := b.idle()
	lease := renewed(t)
	e.measure(t, "full", true)
	eventually(t, "the kubelet has renewed its lease", func() (bool, string) {
		now := renewed(t)
		return now.After(lease.Time), now.String()
	})
	awaitReady(t, corev1.ConditionTrue)
	ended, idleSince := b.idle()
	if share := (idleSince - idle) / (ended - began); share > 0.1 { // of one CPU
		t.Errorf("the node was not full: CPUs idled for %.2f of the time", share)
	}
	for _, f := range e.record.Failed() {
		t.Errorf("missed: %v", f)
	}
	if *records == "" {
		return
	}
	labelNode(t, v1alpha1.SafeModeLabel, `"true"`)
	b.await(attached, "disabled")
	e.measure(t, "full, with the kernel's own scheduler", false)
	if err := e.record.Write(filepath.Join(*records, "exec.json")); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Delete(t.Context(), spin); err != nil { // else the verifier has to wait for its turns, too
		t.Fatal(err)
	}
	labelNode(t, v1alpha1.SafeModeLabel, "null")
	awaitEnforced(t, metav1.ConditionTrue)
}

// execs are what exec takes, into pods of each kind.
type execs struct {
	system, critical, light *corev1.Pod // light requests no CPU
	record                  scale.Record
}

func (e *execs) begin(t *testing.T) {
	t.Helper()
	program, err := os.ReadFile("../../bin/temper-agent")
	if err != nil {
		t.Fatal(err)
	}
	var n corev1.Node
	if err := get(t, &n, "", nodeName); err != nil {
		t.Fatal(err)
	}
	e.record = scale.Record{
		Scenario:  "exec into a pod of a node that critical pods use all of",
		Agent:     fmt.Sprintf("%x", sha256.Sum256(program)),
		Scheduler: status(t).SchedulerSHA256,
		Kernel:    n.Status.NodeInfo.KernelVersion,
		Cluster:   n.Status.NodeInfo.KubeletVersion,
	}
}

func (e *execs) measure(t *testing.T, when string, bar bool) {
	t.Helper()
	for _, into := range []struct {
		kind string
		pod  *corev1.Pod
		bar  bool
	}{{"a system pod", e.system, bar}, {"a critical pod", e.critical, bar}, {"a critical pod that requests no CPU", e.light, false}} {
		took := secondsOfExec(t, into.pod)
		t.Logf("%s: into %s: %.2f s", when, into.kind, took)
		e.record.Add(fmt.Sprintf("%s: into %s, median of %d", when, into.kind, len(took)), took[len(took)/2], "s")
		longest := e.record.Add(fmt.Sprintf("%s: into %s, the longest", when, into.kind), took[len(took)-1], "s")
		if into.bar {
			longest.AtMost(execMost)
		}
	}
}

// criticalPod is one that requests so much CPU time; "": none.
func criticalPod(name, cpu, script string) *corev1.Pod {
	pod := podOf("kube-system", name, script)
	pod.Spec.PriorityClassName = "temper-critical"
	if cpu != "" {
		pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: resources(cpu, "20Mi")}
	}
	return pod
}

// secondsOfExec are what one exec after the other into a pod takes, by the node's clock, in order of size: from when one
// runs to when the next one does.
func secondsOfExec(t *testing.T, pod *corev1.Pod) (took []float64) {
	t.Helper()
	const times = 5
	last := 0.0
	for i := range times + 1 {
		out, err := execute(t, pod.Namespace, pod.Name, "/busybox", "cat", "/proc/uptime")
		if err != nil {
			t.Fatal(err)
		}
		up, err := strconv.ParseFloat(strings.Fields(out)[0], 64)
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			took = append(took, up-last)
		}
		last = up
	}
	slices.Sort(took)
	return took
}

// renewed is when the kubelet last said that it lives.
func renewed(t *testing.T) metav1.MicroTime {
	t.Helper()
	var lease coordinationv1.Lease
	if err := get(t, &lease, corev1.NamespaceNodeLease, nodeName); err != nil {
		t.Fatal(err)
	}
	return *lease.Spec.RenewTime
}
