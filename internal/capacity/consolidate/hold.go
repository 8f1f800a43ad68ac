package consolidate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// LeaseName is the Lease whose holder may carry out a plan.
const LeaseName = "temper-consolidate"

// errLost ends a plan whose owner could not renew the Lease: others may be at work.
var errLost = errors.New("the Lease could not be renewed")

// hold does work while this executor has the Lease, and gives it up afterwards. The work's context ends with ctx, and where
// the Lease could not be renewed. It waits for a holder that was not seen to renew, and no longer.
func (e *Executor) hold(ctx context.Context, work func(context.Context) error) error {
	electing, end := context.WithCancel(klog.NewContext(context.WithoutCancel(ctx), logr.Discard()))
	defer end()
	started, result := make(chan struct{}), make(chan error, 1)
	elector, err := e.elector(func(leading context.Context) {
		close(started)
		if leading.Err() != nil { // it was ended while this goroutine was to start
			result <- errLost
			return
		}
		// Not before the work has taken back what it must is the Lease given up: hence not the election's context.
		working, stop := context.WithCancelCause(context.WithoutCancel(leading))
		defer context.AfterFunc(ctx, func() { stop(context.Cause(ctx)) })()
		defer context.AfterFunc(leading, func() { stop(errLost) })()
		defer end()
		result <- work(working)
	})
	if err != nil {
		return fmt.Errorf("who carries out a plan cannot be settled: %w", err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); elector.Run(electing) }()
	// A dead holder is known after one duration; the next tries lie up to 2.2 periods apart.
	patience := time.NewTimer(e.Timing.Lease * 3 / 2)
	defer patience.Stop()
	select {
	case <-started:
	case <-ctx.Done():
	case <-patience.C:
	}
	select {
	case <-started:
		err := <-result
		<-ended
		return err
	default:
	}
	end()
	<-ended
	select {
	case <-started: // at the last moment
		return <-result
	default:
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return e.notHeld(ctx, elector.GetLeader())
}

// elector takes part in the election, and leads where it wins, with a context that ends when it has lost.
func (e *Executor) elector(lead func(context.Context)) (*leaderelection.LeaderElector, error) {
	return leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: LeaseName}, Client: e.Leases, LockConfig: resourcelock.ResourceLockConfig{Identity: e.Owner},
		},
		LeaseDuration: e.Timing.Lease, RenewDeadline: e.Timing.Lease * 2 / 3, RetryPeriod: e.Timing.Lease / 6,
		ReleaseOnCancel: true, Name: LeaseName,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: lead,
			OnStoppedLeading: func() {},
			OnNewLeader: func(who string) {
				if who != e.Owner {
					e.say(Progress{}, "waiting: %s has the Lease %s/%s", who, e.Namespace, LeaseName)
				}
			},
		},
	})
}

// HeldError is that another executor is at work.
type HeldError struct{ Namespace, Owner string }

func (h *HeldError) Error() string {
	return fmt.Sprintf("%s carries out a plan: it renews the Lease %s/%s", h.Owner, h.Namespace, LeaseName)
}

// notHeld says why the Lease was not to be had: somebody has it, or it cannot be written.
func (e *Executor) notHeld(ctx context.Context, holder string) error {
	if holder != "" && holder != e.Owner {
		return &HeldError{e.Namespace, holder}
	}
	// The library has logged the reason, where nobody reads it: so ask once more, and change nothing.
	leases, never := e.Leases.Leases(e.Namespace), []string{metav1.DryRunAll}
	lease, err := leases.Get(ctx, LeaseName, metav1.GetOptions{})
	switch {
	case err == nil:
		_, err = leases.Update(ctx, lease, metav1.UpdateOptions{DryRun: never})
	case apierrors.IsNotFound(err):
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: LeaseName}}
		_, err = leases.Create(ctx, lease, metav1.CreateOptions{DryRun: never})
	}
	if err != nil {
		return fmt.Errorf("the Lease %s/%s cannot be written: %w", e.Namespace, LeaseName, err)
	}
	return fmt.Errorf("the Lease %s/%s could not be had, and is free now", e.Namespace, LeaseName)
}
