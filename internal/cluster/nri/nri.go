// Package nri has the container runtime say when a container starts (Node Resource Interface), so that its pod is in its
// tier before it runs.
//
// Problem: a cgroup's coming is seen a moment after it has come, and what is in it may run meanwhile.
//
// Method: the runtime asks plugins before each start, and waits for their answers. This one has the agent look at the node
// first. It says when; which pod has which cgroup and which tier, the agent knows from elsewhere. It asks nobody, changes
// no container and never fails; it answers in time whatever happens.
//
// Limits: where the runtime has no NRI, or the agent does not answer in time, a tier comes with the agent's own look at
// the cgroup tree. The log names each container that did not wait for it.
package nri

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/stub"
	"golang.org/x/sys/unix"
)

const (
	answerWithin   = 100 * time.Millisecond // for so long a container may have to wait, at most
	registerWithin = 10 * time.Second       // a runtime that takes longer does not answer
	firstRetry     = time.Second
	longestRetry   = 30 * time.Second
)

// name and index are what the runtime calls the plugin. It asks plugins in the order of their indexes.
const name, index = "temper", "99"

// Plugin is the agent as the runtime sees it.
type Plugin struct {
	socket string
	settle func(context.Context) bool
	log    *slog.Logger
	told   bool // that the runtime cannot be reached
	pid    atomic.Int32
}

// PID is the process that listens at the socket; 0 while it is not known. The kernel says it, not the runtime.
func (p *Plugin) PID() int { return int(p.pid.Load()) }

// New makes one for the runtime at socket; settle returns once what is on the node has its tiers.
func New(socket string, settle func(context.Context) bool, log *slog.Logger) *Plugin {
	return &Plugin{socket: socket, settle: settle, log: log}
}

// Run is the plugin's life, until ctx ends. A runtime that is not there, or goes, is tried again.
func (p *Plugin) Run(ctx context.Context) {
	backoff := firstRetry
	for ctx.Err() == nil {
		connected, err := p.connect(ctx)
		if connected {
			backoff = firstRetry
		}
		if ctx.Err() != nil {
			return
		}
		if !p.told {
			p.told = true
			p.log.Warn("the container runtime does not say when containers start; tiers follow their cgroups", "socket", p.socket, "why", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(backoff):
		}
		backoff = min(2*backoff, longestRetry)
	}
}

// connect is one connection's life; connected tells whether the runtime has taken the plugin.
func (p *Plugin) connect(ctx context.Context) (connected bool, err error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", p.socket)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	p.pid.Store(listener(conn))
	h := &handler{settle: p.settle, log: p.log, configured: make(chan string, 1)}
	s, err := stub.New(h, stub.WithConnection(conn), stub.WithPluginName(name), stub.WithPluginIdx(index), stub.WithLogger(quiet{}))
	if err != nil {
		return false, err
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	select {
	case runtime := <-h.configured:
		p.log.Info("the container runtime says when containers start", "runtime", runtime)
		p.told = false
		return true, <-ended
	case err := <-ended:
		return false, err
	case <-time.After(registerWithin): // closing the connection ends the rest
		return false, errors.New("it does not answer")
	}
}

// listener is the process at the other end; 0: the kernel does not say.
func listener(conn net.Conn) (pid int32) {
	socket, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return 0
	}
	_ = socket.Control(func(fd uintptr) {
		if peer, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = peer.Pid
		}
	})
	return pid
}

// handler has what the runtime asks.
type handler struct {
	settle     func(context.Context) bool
	log        *slog.Logger
	configured chan string
}

// Configure is called once, when the runtime has taken the plugin.
func (h *handler) Configure(_ context.Context, _, runtime, version string) (api.EventMask, error) {
	h.configured <- runtime + " " + version
	return 0, nil // what there are methods for
}

// Synchronize is called with all containers that run, some of which may have started unseen.
func (h *handler) Synchronize(ctx context.Context, _ []*api.PodSandbox, _ []*api.Container) ([]*api.ContainerUpdate, error) {
	h.look(ctx)
	return nil, nil
}

// StartContainer is called when a container's process is in its cgroup, and before it runs.
func (h *handler) StartContainer(ctx context.Context, pod *api.PodSandbox, container *api.Container) error {
	if !h.look(ctx) {
		h.log.Warn("a container starts before the agent has looked; its tier follows", "pod", pod.GetNamespace()+"/"+pod.GetName(), "container", container.GetName())
	}
	return nil
}

// look tells whether the agent has looked in time.
func (h *handler) look(ctx context.Context) bool {
	ctx, stop := context.WithTimeout(ctx, answerWithin)
	defer stop()
	return h.settle(ctx)
}

// quiet drops what the library says: it tells of each step of each connection.
type quiet struct{}

func (quiet) Debugf(context.Context, string, ...any) {}
func (quiet) Infof(context.Context, string, ...any)  {}
func (quiet) Warnf(context.Context, string, ...any)  {}
func (quiet) Errorf(context.Context, string, ...any) {}
