//go:build kubernetes

package kubernetes

import (
	"flag"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/base/fixture"
	"temper.dev/temper/internal/node/agent"
)

// A test cannot wait for what somebody may want to try once: make scale does.
var away = flag.Duration("away", 0, "for how `LONG` the API server is away, once the agent has told so")

// line is the network between an agent and the API server. Once it is cut nobody answers.
type line struct {
	t    *testing.T
	to   string
	at   net.Listener
	mu   sync.Mutex
	open []net.Conn // both ends of each connection
}

// newLine lays one to the API server.
func newLine(t *testing.T) *line {
	t.Helper()
	api := server.ControlPlane.GetAPIServer().SecureServing
	l := &line{t: t, to: net.JoinHostPort(api.Address, api.Port)}
	l.mend("127.0.0.1:0")
	t.Cleanup(l.cut)
	return l
}

// over is a kubeconfig with the API server at this end.
func (l *line) over(kubeconfig []byte) []byte {
	return regexp.MustCompile(`server: .*`).ReplaceAll(kubeconfig, []byte("server: https://"+l.at.Addr().String()))
}

func (l *line) mend(address string) {
	l.t.Helper()
	var err error
	if l.at, err = net.Listen("tcp", address); err != nil {
		l.t.Fatal(err)
	}
	go l.accept(l.at)
}

func (l *line) accept(at net.Listener) {
	for {
		near, err := at.Accept()
		if err != nil {
			return // it is cut
		}
		far, err := net.Dial("tcp", l.to)
		if err != nil {
			near.Close()
			continue
		}
		l.mu.Lock()
		l.open = append(l.open, near, far)
		l.mu.Unlock()
		go io.Copy(near, far)
		go io.Copy(far, near)
	}
}

func (l *line) cut() {
	l.at.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range l.open {
		conn.Close()
	}
	l.open = nil
}

// An API server that goes, and comes again: what it said last holds, however long that takes, and what it says then counts.
func TestAnAPIServerThatGoesAndComes(t *testing.T) {
	l := newLine(t)
	n := newNode(t, nil)
	n.end(syscall.SIGTERM)
	n.start(l.over(asAgent(t, n.name)))
	_, batch := n.run("batch", "", "/kubepods/besteffort")
	plainPod, plain := n.run("plain", "", "/kubepods/burstable")
	eventually(t, "the pods are in their tiers", func() bool {
		return n.idle(batch) == "1" && slices.Equal(n.pods("standard"), []string{"home/plain"})
	})

	l.cut()
	eventually(t, "the agent tells that it hears nothing", func() bool {
		return slices.ContainsFunc(n.state().Problems, func(p string) bool { return strings.Contains(p, "cannot watch pods") })
	})
	time.Sleep(*away)
	n.makeAnew(batch)
	eventually(t, "a known pod whose cgroup is made anew has its tier again", func() bool { return n.idle(batch) == "1" })
	unknown := "/kubepods/besteffort/pod00000000-0000-0000-0000-000000000001"
	fixture.Cgroup(t, n.root, unknown)
	plainPod.Labels = map[string]string{v1alpha1.TierLabel: "background"}
	if err := cluster.Update(t.Context(), plainPod); err != nil {
		t.Fatal(err)
	}
	if s := n.state(); s.Off != nil || n.idle(unknown) != "0" || n.idle(plain) != "0" || len(s.Members) != 2 {
		t.Errorf("cpu.idle is %s of a pod that nobody knows, %s of a standard one; %+v", n.idle(unknown), n.idle(plain), s)
	}
	if err := os.RemoveAll(n.root.Cgroup(unknown)); err != nil {
		t.Fatal(err)
	}

	l.mend(l.at.Addr().String())
	// A watch that has failed is tried again after 30 s, and as much again by chance.
	patiently(t, "the agent hears of a change", 2*time.Minute, func() bool { return n.idle(plain) == "1" })
	patiently(t, "nothing is wrong any more, and the node's report says so", 2*time.Minute, func() bool {
		return len(n.state().Problems)+len(n.status().Problems) == 0 && len(n.pods("background")) == 2
	})
}

func TestAnAPIServerThatIsAway(t *testing.T) {
	n := newNode(t, nil)
	_, batch := n.run("batch", "", "/kubepods/besteffort")
	eventually(t, "the pod is in background", func() bool { return n.idle(batch) == "1" })
	eventually(t, "what is known is kept for the next agent", func() bool {
		text, err := os.ReadFile(n.root.Run("cluster.json"))
		return err == nil && strings.Contains(string(text), "home/batch")
	})
	n.end(syscall.SIGKILL)
	n.makeAnew(batch)
	n.start(unanswered(t, n.name))
	eventually(t, "the pod is in background again", func() bool { return n.idle(batch) == "1" })
	eventually(t, "it is told", func() bool {
		return strings.Contains(strings.Join(n.state().Problems, "\n"), "what it said last holds")
	})
	n.end(syscall.SIGTERM)

	// After a reboot nothing is known, and the node is left alone until somebody says what it should be.
	for _, file := range []string{"cluster.json", "status.json"} {
		os.Remove(n.root.Run(file))
	}
	n.start(unanswered(t, n.name))
	eventually(t, "the agent waits", func() bool { return n.state().Off != nil && n.state().Off.Reason == agent.NotKnown })
	if n.idle(batch) != "0" {
		t.Error("a tier is in force that nobody has said")
	}
}

// makeAnew has another cgroup of the same name in the place of one. Its id is another, as it always is with the kernel's: where a
// directory is removed first, the next may have its number.
func (n *node) makeAnew(cg string) {
	n.t.Helper()
	if err := os.Rename(n.root.Cgroup(cg), filepath.Join(n.t.TempDir(), "gone")); err != nil {
		n.t.Fatal(err)
	}
	fixture.Cgroup(n.t, n.root, cg)
}
