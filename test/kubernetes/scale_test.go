//go:build kubernetes && scale

package kubernetes

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"golang.org/x/sys/unix"

	"temper.dev/temper/internal/base/fixture"
	"temper.dev/temper/internal/evidence/scale"
)

var folder = flag.String("records", "", "`FOLDER` for the records")

// process is what the kernel says of the agent.
type process struct {
	t  *testing.T
	at string // its folder in /proc
}

func (n *node) process() process {
	return process{n.t, filepath.Join("/proc", strconv.Itoa(n.cmd.Process.Pid))}
}

func (p process) read(name string) string {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.at, name))
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text)
}

// status is a number of its status.
func (p process) status(name string) float64 {
	p.t.Helper()
	_, after, _ := strings.Cut(p.read("status"), name+":")
	value, err := strconv.ParseFloat(strings.Fields(after)[0], 64)
	if err != nil {
		p.t.Fatal(err)
	}
	return value
}

func (p process) mebibytes(name string) float64 { return p.status(name) / 1024 }

// cpu is the CPU time that it has used, all its threads together.
func (p process) cpu() time.Duration {
	p.t.Helper()
	stat := p.read("stat")
	fields := strings.Fields(stat[strings.LastIndex(stat, ")")+1:]) // its name may have spaces
	const user, system, tick = 11, 12, 10 * time.Millisecond
	var sum time.Duration
	for _, i := range []int{user, system} {
		ticks, err := strconv.Atoi(fields[i])
		if err != nil {
			p.t.Fatal(err)
		}
		sum += time.Duration(ticks) * tick
	}
	return sum
}

// files are the files that it has open, and the watches of cgroups that it has.
func (p process) files() (open, watches float64) {
	p.t.Helper()
	entries, err := os.ReadDir(filepath.Join(p.at, "fdinfo"))
	if err != nil {
		p.t.Fatal(err)
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(p.at, "fdinfo", e.Name()))
		if errors.Is(err, os.ErrNotExist) {
			continue // it was closed meanwhile
		}
		if err != nil {
			p.t.Fatal(err)
		}
		open++
		watches += float64(strings.Count(string(text), "inotify wd:"))
	}
	return open, watches
}

// goroutines ends the agent as SIGQUIT does, with a word of each goroutine, and counts them.
func (n *node) goroutines() float64 {
	n.t.Helper()
	said, err := os.Stat(n.said.Name())
	if err != nil {
		n.t.Fatal(err)
	}
	n.end(syscall.SIGQUIT)
	text, err := os.ReadFile(n.said.Name())
	if err != nil {
		n.t.Fatal(err)
	}
	count := len(regexp.MustCompile(`(?m)^goroutine \d+`).FindAll(text[said.Size():], -1))
	if count == 0 {
		n.t.Fatalf("the agent has not said what its goroutines do: %s", text[said.Size():])
	}
	return float64(count)
}

// finish keeps a record, and holds it to its bars.
func finish(t *testing.T, name string, r *scale.Record) {
	t.Helper()
	program, err := os.ReadFile(root + "/bin/temper-agent")
	if err != nil {
		t.Fatal(err)
	}
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		t.Fatal(err)
	}
	version, err := kubernetes.NewForConfigOrDie(server.Config).Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	r.Agent, r.Kernel, r.Cluster = fmt.Sprintf("%x", sha256.Sum256(program)), unix.ByteSliceToString(u.Release[:]), version.GitVersion
	for _, f := range r.Figures {
		t.Log(f)
	}
	if *folder != "" {
		if err := r.Write(filepath.Join(*folder, name+".json")); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range r.Failed() {
		t.Errorf("missed: %v", f)
	}
}

// standing are pods that run on a node, of which the oldest is replaced now and then.
type standing struct {
	n    *node
	made int
	pods []*corev1.Pod
}

// parents are the QoS classes in turn, as the kubelet names them.
var parents = []string{"/kubepods/burstable", "/kubepods/burstable", "/kubepods/besteffort"}

// add makes a pod about as large as usual, and its cgroup.
func (s *standing) add() error {
	pod := podOf("home", fmt.Sprintf("standing-%d", s.made), []string{"temper-critical", "", "", "", ""}[s.made%5])
	pod.Spec.NodeName = s.n.name
	parent := parents[s.made%len(parents)]
	if strings.HasSuffix(parent, "burstable") {
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}
	}
	for i := range 40 {
		pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%d", i), Value: strings.Repeat("x", 100)})
	}
	s.made++
	ctx := s.n.t.Context()
	if err := cluster.Create(ctx, pod); err != nil {
		return err
	}
	s.pods = append(s.pods, pod)
	cg := parent + "/pod" + string(pod.UID)
	if err := fixture.MakeCgroup(s.n.root, cg); err != nil {
		return err
	}
	fixture.Write(s.n.t, s.n.root, "/sys/fs/cgroup"+cg+"/cpu.stat", "usage_usec 2500000\nuser_usec 2000000\nsystem_usec 500000\n")
	fixture.Write(s.n.t, s.n.root, "/sys/fs/cgroup"+cg+"/cpu.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=250000\n")
	pod.Status.Phase = corev1.PodRunning
	return cluster.Status().Update(ctx, pod)
}

// remove ends the oldest.
func (s *standing) remove(ctx context.Context) error {
	pod := s.pods[0]
	s.pods = s.pods[1:]
	errs := []error{cluster.Delete(ctx, pod, client.GracePeriodSeconds(0))}
	for _, parent := range parents {
		errs = append(errs, os.RemoveAll(s.n.root.Cgroup(parent+"/pod"+string(pod.UID))))
	}
	return errors.Join(errs...)
}

// A node with 110 pods, one of which is replaced each 5 s, and with a scrape each 15 s.
func TestScaleIdle(t *testing.T) {
	const pods, every, scrapes, settle, window = 110, 5 * time.Second, 3, 9, 36 // the last three in turns of 'every'
	n := newNode(t, nil)
	n.end(syscall.SIGTERM)
	address := freePort(t, "127.0.0.1").String()
	n.start(asAgent(t, n.name), "--metrics", address)
	s := &standing{n: n}
	t.Cleanup(func() {
		for len(s.pods) > 0 {
			if err := s.remove(context.Background()); err != nil {
				t.Error(err)
			}
		}
	})
	for range pods {
		if err := s.add(); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "all pods have a tier", func() bool { return len(n.state().Members) == pods })

	turns := time.NewTicker(every)
	defer turns.Stop()
	p := n.process()
	// share is the CPU time of so many turns, in per cent of one core.
	share := func(count int, replace bool) float64 {
		began, used := time.Now(), p.cpu()
		for turn := range count {
			<-turns.C
			if replace {
				if err := errors.Join(s.remove(t.Context()), s.add()); err != nil {
					t.Fatal(err)
				}
			}
			if turn%scrapes == 0 {
				scrape(t, address)
			}
		}
		return 100 * (p.cpu() - used).Seconds() / time.Since(began).Seconds()
	}
	share(settle, true)
	replaced := share(window, true)
	eventually(t, "all pods have a tier", func() bool { return len(n.state().Members) == pods })
	still := share(settle, false)

	r := &scale.Record{Scenario: fmt.Sprintf("%d pods, of which one is replaced each %v; a scrape of the metrics each %v; %v of it",
		pods, every, scrapes*every, window*every)}
	r.Add("CPU time, of one core", replaced, "%").AtMost(0.5)
	r.Add("the same while no pod is replaced", still, "%")
	r.Add("resident memory", p.mebibytes("VmRSS"), "MiB").AtMost(50)
	r.Add("the most that it ever was", p.mebibytes("VmHWM"), "MiB")
	r.Add("problems that the agent tells of", float64(len(n.state().Problems)), "").AtMost(0)
	finish(t, "idle", r)
}

func scrape(t *testing.T, address string) {
	t.Helper()
	response, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if text, err := io.ReadAll(response.Body); err != nil || !strings.Contains(string(text), "temper_pod_cpu_seconds_total") {
		t.Fatalf("%v: %s", err, text)
	}
}

// A thousand pods start at 20 a second, and go once they have their tier. What an agent has after them is what one has
// after the first hundred.
func TestScaleChurn(t *testing.T) {
	const warm, pods, perSecond, abreast = 100, 1000, 20, 8
	n := newNode(t, nil)
	n.lives(0, warm, abreast)
	goroutines := n.goroutines()

	n.start(asAgent(t, n.name))
	n.lives(warm, 2*warm, abreast)
	p := n.process()
	memory, used := p.mebibytes("VmRSS"), p.cpu()
	files, watches := p.files()

	starts := time.NewTicker(time.Second / perSecond)
	defer starts.Stop()
	var all sync.WaitGroup
	failed := make(chan error, pods)
	began := time.Now()
	for i := range pods {
		<-starts.C
		all.Go(func() { failed <- n.life(t.Context(), fmt.Sprintf("paced-%d", i), i%5 == 0) })
	}
	took := time.Since(began)
	all.Wait()
	close(failed)
	without := 0
	for err := range failed {
		if err != nil {
			t.Log(err)
			without++
		}
	}
	n.awaitNoPods()
	filesAfter, watchesAfter := p.files()

	r := &scale.Record{Scenario: fmt.Sprintf("%d pods start at %d a second, and end once they have their tier", pods, perSecond)}
	r.Add("pods that started, each second", pods/took.Seconds(), "").AtLeast(0.95 * perSecond)
	r.Add("pods that had no tier", float64(without), "").AtMost(0)
	r.Add("CPU time of a start and an end", (p.cpu()-used).Seconds()*1000/pods, "ms")
	r.Add("resident memory", p.mebibytes("VmRSS"), "MiB").AtMost(50)
	r.Add("more than before", p.mebibytes("VmRSS")-memory, "MiB").AtMost(5)
	r.Add("the most that it ever was", p.mebibytes("VmHWM"), "MiB")
	r.Add("open files more than before", filesAfter-files, "").AtMost(0)
	r.Add("watched cgroups more than before", watchesAfter-watches, "").AtMost(0)
	r.Add("problems that the agent tells of", float64(len(n.state().Problems)), "").AtMost(0)
	r.Add("goroutines more than after 100", n.goroutines()-goroutines, "").AtMost(5)
	finish(t, "churn", r)
}
