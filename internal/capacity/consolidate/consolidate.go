// Package consolidate empties nodes of a cluster: it carries out what package plan has found. It works on the API server
// alone, and keeps nothing in memory that another process would need to clean up after it.
//
// One Lease says who may carry out a plan; its holder renews it while it lives. Each node of a plan is cordoned and marked
// in one write (marker.go), so no cordon of ours is ever without the name of its owner. Whoever gets the Lease takes back
// what owners before it have left (sweep). A Lease is judged by whether it was seen to change, not by its times: a clock
// that jumps takes it from nobody.
//
// A plan is carried out in rounds (rounds.go). Each takes a fresh snapshot, has the planner confirm what is still to be
// emptied, releases the nodes that it no longer confirms, and carries out one step. A pod's eviction (evict.go) names the
// version of the pod that was looked at, and the next pod waits until this one's successor has a node.
package consolidate

import (
	"context"
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"temper.dev/temper/internal/capacity/collect"
	"temper.dev/temper/internal/capacity/plan"
	"temper.dev/temper/internal/capacity/snapshot"
)

// Executor carries plans out in one cluster. One that runs is not for use by others at the same time.
type Executor struct {
	// Cluster must read the API server, and no cache: what is decided must rest on what is.
	Cluster client.Client
	Leases  coordinationv1.LeasesGetter
	// Namespace has the Lease. All executors of a cluster must have the same.
	Namespace string
	// Owner is who this is: no two processes may have the same.
	Owner string
	// Now is the time of day. It dates markers and judges how old agents' reports are; no wait rests on it.
	Now func() time.Time
	// Confirm are the options of plans that confirm what is carried out. Nodes of them is not used.
	Confirm plan.Options
	Timing  Timing
	// Say is told what is done, and how far it has come. It must not keep the executor waiting.
	Say func(Progress)
}

// Timing is how long things may take. DefaultTiming is for clusters, shorter ones for tests.
type Timing struct {
	// Lease is for how long a Lease must not change until its holder counts as dead. It is renewed six times as often.
	Lease time.Duration
	// Plan is for how long a plan is carried out, and Pod how long a pod may take to be evicted, to end, and to be placed anew.
	Plan, Pod time.Duration
	// Poll is how often the API server is asked for what is awaited.
	Poll time.Duration
	// Back is how long taking back may take when a plan was interrupted.
	Back time.Duration
}

// DefaultTiming keeps what a dead process has left below a minute, where somebody sweeps.
var DefaultTiming = Timing{Lease: 30 * time.Second, Plan: time.Hour, Pod: 10 * time.Minute, Poll: time.Second, Back: 30 * time.Second}

// Progress is how far a plan has come.
type Progress struct {
	Nodes, Emptied, Moves, Moved int
	Doing                        string
}

// Outcome is what became of a plan. Nodes that are neither emptied nor kept are gone.
type Outcome struct {
	Plan    string      `json:"plan"`
	Planned []string    `json:"planned"`
	Emptied []string    `json:"emptied"`
	Kept    []plan.Kept `json:"kept"` // released again, or left to whoever has taken them
	Moved   int         `json:"podsMoved"`
}

// Run carries a plan out. Before it changes anything it refuses a plan that the planner does not confirm as a whole, and a
// cluster in which somebody else removes nodes. From then on there is an Outcome, also beside an error: where ctx ends, the
// Lease is lost, or a pod stays pending, the nodes that are not empty yet are released.
func (e *Executor) Run(ctx context.Context, p *Plan) (*Outcome, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	var o *Outcome
	err := e.hold(ctx, func(ctx context.Context) (err error) {
		if _, err = e.sweep(ctx); err != nil {
			return err
		}
		o, err = e.carryOut(ctx, p)
		return err
	})
	return o, err
}

// Sweep takes back what executors have left that ended before their plan did. Emptied nodes stay cordoned.
func (e *Executor) Sweep(ctx context.Context) ([]Released, error) {
	return e.held(ctx, e.sweep)
}

// Rollback takes back all that executors have done to nodes, also to those that were emptied; with names, to these alone.
func (e *Executor) Rollback(ctx context.Context, names ...string) ([]Released, error) {
	wanted := func(n *marked) bool {
		if len(names) == 0 {
			return true
		}
		for _, name := range names {
			if name == n.Name {
				return true
			}
		}
		return false
	}
	return e.held(ctx, func(ctx context.Context) ([]Released, error) { return e.releaseAll(ctx, wanted, "rolled back") })
}

func (e *Executor) held(ctx context.Context, do func(context.Context) ([]Released, error)) (released []Released, err error) {
	err = e.hold(ctx, func(ctx context.Context) (err error) {
		released, err = do(ctx)
		return err
	})
	return released, err
}

// sweep may be called by who holds the Lease: then no other owner is at work.
func (e *Executor) sweep(ctx context.Context) ([]Released, error) {
	return e.releaseAll(ctx, func(n *marked) bool { return n.marker.Owner != e.Owner && n.marker.Emptied == nil }, "its owner has ended")
}

// Snapshot is the cluster as a plan sees it.
func Snapshot(ctx context.Context, cluster client.Reader, now time.Time) (*collect.Result, error) {
	r, err := collect.FromCluster(ctx, cluster, now)
	if err != nil {
		return nil, err
	}
	return r, r.AddMoment(ctx, cluster)
}

// confirm is what the planner makes of the nodes, and why it keeps those that it does not empty.
func (e *Executor) confirm(ctx context.Context, s *snapshot.Snapshot, nodes []string) (*plan.Plan, map[string]string, error) {
	options := e.Confirm
	options.Nodes = nodes
	found, err := plan.Make(ctx, s, options)
	if err != nil {
		return nil, nil, err
	}
	asked, kept := map[string]bool{}, map[string]string{}
	for _, name := range nodes {
		asked[name] = true
	}
	for _, k := range found.Kept {
		if asked[k.Node] {
			kept[k.Node] = strings.Join(k.Reasons, "; ")
		}
	}
	return found, kept, nil
}

func (e *Executor) say(p Progress, format string, args ...any) {
	if e.Say != nil {
		p.Doing = fmt.Sprintf(format, args...)
		e.Say(p)
	}
}
