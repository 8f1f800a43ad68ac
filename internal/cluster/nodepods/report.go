package nodepods

import (
	"cmp"
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/node/agent"
	"temper.dev/temper/internal/node/status"
)

const (
	reportEvery  = time.Minute            // the figures; what is in force is told at once
	reportAtMost = 200 * time.Millisecond // between two, however much changes
	podsAtMost   = 5 * time.Second        // between two for the sake of pods that come and go: there may be many nodes
	reportWithin = 5 * time.Second        // a request that takes longer has failed
	firstRetry   = 500 * time.Millisecond
	longestRetry = 30 * time.Second
	lastWithin   = 2 * time.Second
)

// Reporter writes the node's TemperNode.
type Reporter struct {
	cluster client.Client
	node    string
	root    host.Root
	kernel  string // version
	log     *slog.Logger
	look    func() (*status.Status, error)
	states  chan agent.State // the newest
	told    func(error)      // how a report went
	failing bool             // the last report
	unready atomic.Pointer[error]
}

// NewReporter makes one for a source's node, and tells the source how reports go; look tells what is in force there.
func NewReporter(source *Source, config *rest.Config, kernel string, look func() (*status.Status, error), log *slog.Logger) (*Reporter, error) {
	cluster, err := newClient(config)
	if err != nil {
		return nil, err
	}
	r := &Reporter{cluster: cluster, node: source.reader.node, root: source.root, kernel: kernel, log: log, look: look,
		states: make(chan agent.State, 1), told: source.reader.reported}
	r.unready.Store(&errNotReported)
	return r, nil
}

// Tell hands over the agent's state. Only the newest is kept, so that the agent never waits for an API server.
func (r *Reporter) Tell(state agent.State) {
	select {
	case <-r.states:
	default:
	}
	r.states <- state
}

// Run reports until ctx ends; then it reports once more.
func (r *Reporter) Run(ctx context.Context) {
	var state agent.State
	var reported agent.State
	var due bool // pods have come or gone since
	var backoff time.Duration
	again := time.NewTimer(reportEvery)
	for {
		select {
		case <-ctx.Done():
			r.lastWord(state)
			return
		case state = <-r.states:
			if backoff > 0 {
				continue // until the next try
			}
			if state.EqualButMembers(reported) {
				if !due {
					again.Reset(podsAtMost)
				}
				due = true
				continue
			}
		case <-again.C:
			if state.PID == 0 { // the agent has said nothing yet
				again.Reset(reportEvery)
				continue
			}
		}
		err := r.report(ctx, state)
		if ctx.Err() != nil {
			continue
		}
		r.note(err)
		if err == nil {
			backoff, due, reported = 0, false, state
			again.Reset(reportEvery)
			pause(ctx, reportAtMost)
			continue
		}
		backoff = min(max(2*backoff, firstRetry), longestRetry)
		again.Reset(backoff)
	}
}

// note is loud once, however often a report fails.
func (r *Reporter) note(err error) {
	if failing := err != nil; failing != r.failing {
		r.failing = failing
		if failing {
			r.log.Error("cannot report to the API server", "error", err)
		} else {
			r.log.Info("reports reach the API server again")
		}
	}
	r.told(err)
}

// lastWord reports what the agent has left behind.
func (r *Reporter) lastWord(state agent.State) {
	select {
	case state = <-r.states:
	default:
	}
	if state.Started.IsZero() { // it has never run: another agent does
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), lastWithin)
	defer stop()
	if err := r.report(ctx, state); err != nil {
		r.log.Error("cannot report to the API server that the agent has ended", "error", err)
	}
}

func (r *Reporter) report(ctx context.Context, state agent.State) error {
	ctx, stop := context.WithTimeout(ctx, reportWithin)
	defer stop()
	seen, err := r.look()
	if err != nil {
		return err
	}
	var object v1alpha1.TemperNode
	err = r.cluster.Get(ctx, client.ObjectKey{Name: r.node}, &object)
	if apierrors.IsNotFound(err) {
		err = r.create(ctx, &object)
	}
	if err != nil {
		return err
	}
	before := object.Status
	object.Status = statusOf(r.root, state, seen, r.kernel, before)
	object.Status.Reported = metav1.Now()
	said := object.Status
	if err := r.cluster.Status().Update(ctx, &object); err != nil {
		return err
	}
	r.readiness(cmp.Or(pruned(&said, &object.Status), unready(state, &said, time.Now())))
	for _, c := range turned(before.Conditions, said.Conditions) {
		r.tell(ctx, object.OwnerReferences, c)
	}
	return nil
}

// create makes the object, which goes when the Node does.
func (r *Reporter) create(ctx context.Context, object *v1alpha1.TemperNode) error {
	owner := metadataOf("Node")
	if err := r.cluster.Get(ctx, client.ObjectKey{Name: r.node}, owner); err != nil {
		return err
	}
	object.ObjectMeta = metav1.ObjectMeta{Name: r.node, OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "Node", Name: owner.Name, UID: owner.UID},
	}}
	return r.cluster.Create(ctx, object)
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
