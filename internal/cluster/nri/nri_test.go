package nri

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	runtime "github.com/containerd/nri/pkg/adaptation"
	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/log"
)

// patience is for a busy host; nothing here takes it.
const patience = 30 * time.Second

// words are the lines of a log, as they come.
type words chan string

func (w words) Write(line []byte) (int, error) {
	w <- string(line)
	return len(line), nil
}

// await takes the next line, which has to have this in it.
func (w words) await(t *testing.T, text string) {
	t.Helper()
	select {
	case line := <-w:
		if !strings.Contains(line, text) {
			t.Fatalf("it says %s and not %q", line, text)
		}
	case <-time.After(patience):
		t.Fatalf("it does not say %q", text)
	}
}

// socketOf names the socket at which a process of this program is a runtime, and nothing else.
const socketOf = "TEMPER_TEST_NRI_SOCKET"

func TestMain(m *testing.M) {
	log.Set(quiet{})
	socket := os.Getenv(socketOf)
	if socket == "" {
		os.Exit(m.Run())
	}
	if _, err := serve(socket); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	select {} // until it is killed
}

// serve starts what containerd has of NRI.
func serve(socket string) (*runtime.Adaptation, error) {
	const none = "/nonexistent"
	all := func(ctx context.Context, synchronize runtime.SyncCB) error {
		_, err := synchronize(ctx, nil, nil)
		return err
	}
	update := func(context.Context, []*api.ContainerUpdate) ([]*api.ContainerUpdate, error) { return nil, nil }
	r, err := runtime.New("runtime", "v1", all, update,
		runtime.WithSocketPath(socket), runtime.WithPluginPath(none), runtime.WithPluginConfigPath(none))
	if err != nil {
		return nil, err
	}
	return r, r.Start()
}

func start(t *testing.T, socket string) *runtime.Adaptation {
	t.Helper()
	r, err := serve(socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Stop)
	return r
}

// startProcess starts a runtime that can be killed.
func startProcess(t *testing.T, socket string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), socketOf+"="+socket)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill() // it may have been killed
		cmd.Wait()
	})
	return cmd
}

// run runs a plugin until the test ends.
func run(t *testing.T, socket string, settle func(context.Context) bool) words {
	t.Helper()
	said := make(words, 100)
	ctx, stop := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	ended.Go(func() { New(socket, settle, slog.New(slog.NewTextHandler(said, nil))).Run(ctx) })
	t.Cleanup(func() {
		stop()
		ended.Wait()
	})
	return said
}

func startContainer(t *testing.T, r *runtime.Adaptation) {
	t.Helper()
	err := r.StartContainer(t.Context(), &api.StartContainerRequest{
		Pod: &api.PodSandbox{Id: "p", Namespace: "shop", Name: "web"}, Container: &api.Container{Id: "c", Name: "main"},
	})
	if err != nil {
		t.Error(err)
	}
}

// looks counts how often an agent has looked.
type looks struct{ atomic.Int64 }

func (l *looks) settle(context.Context) bool { l.Add(1); return true }

// awaitPlugin starts containers until the runtime asks about one: it takes a plugin a moment after it has told it all.
func (l *looks) awaitPlugin(t *testing.T, r *runtime.Adaptation) {
	t.Helper()
	for began := time.Now(); ; {
		before := l.Load()
		startContainer(t, r)
		if before > 0 && l.Load() > before { // the first is at the containers that ran before
			return
		}
		if time.Since(began) > patience {
			t.Fatal("the runtime does not ask")
		}
	}
}

// The runtime starts no container before the agent has looked.
func TestAContainerWaitsForItsTier(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "nri.sock")
	r := start(t, socket)
	var l looks
	run(t, socket, l.settle).await(t, "says when containers start")
	l.awaitPlugin(t, r)
	for range 100 {
		before := l.Load()
		startContainer(t, r)
		if l.Load() != before+1 {
			t.Fatalf("the agent has looked %d times before the container started", l.Load()-before)
		}
	}
}

// An agent that does not answer delays a container for a moment, and fails none. The log says which.
func TestAnAgentThatDoesNotAnswer(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "nri.sock")
	r := start(t, socket)
	var l looks
	said := run(t, socket, func(ctx context.Context) bool {
		if until, bounded := ctx.Deadline(); !bounded || time.Until(until) > answerWithin {
			t.Errorf("a container may wait until %v", until)
		}
		<-ctx.Done()
		l.Add(1)
		return false
	})
	said.await(t, "says when containers start")
	l.awaitPlugin(t, r)
	said.await(t, "pod=shop/web container=main")
}

// A runtime that is not there is told once; one that comes, or comes back, is found.
func TestARuntimeThatComesAndGoes(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "nri.sock")
	var l looks
	said := run(t, socket, l.settle)
	said.await(t, "does not say when containers start")
	for range 2 {
		before := l.Load()
		runtime := startProcess(t, socket)
		said.await(t, "says when containers start")
		for began := time.Now(); l.Load() == before; { // at the containers that ran before
			if time.Since(began) > patience {
				t.Fatal("the agent has not looked")
			}
		}
		if err := runtime.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		said.await(t, "does not say when containers start")
	}
	select {
	case line := <-said:
		t.Errorf("it says, too: %s", line)
	default:
	}
}
