// Readiness: whether an agent's pod may count as available, so that a roll-out goes on to the next node.
//
// Problem: a DaemonSet replaces one agent after the other, and takes a process that runs for one that works. An image whose
// scheduler does not attach would be on all nodes before anybody sees it.
//
// Method: an agent is ready once its TemperNode says what is in force. Where tiers were enforced with this kernel before, by
// whichever agent, they have to be enforced now. The TemperNode keeps that kernel's version, so that neither a restart nor a
// reboot makes a node forget what it could.
//
// Limits: on a node where no scheduler has been attached yet, a broken image looks like an old kernel. The agent is ready
// there once it has said so; 'kubectl temper status' and the alerts tell.

package nodepods

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/node/agent"
	"temper.dev/temper/internal/node/status"
)

// thrownOutFor is how long an agent is not ready after the kernel has thrown its scheduler out, which comes back at once and
// may be thrown out again: as long as such failures count (enforce.Ladder).
const thrownOutFor = 5 * time.Minute

// errNotReported is why an agent is not ready that has reported nothing yet.
var errNotReported = errors.New("its TemperNode is not written yet")

// unready is why an agent in this state is not ready, now that its TemperNode says this; nil: it is.
func unready(state agent.State, said *v1alpha1.TemperNodeStatus, now time.Time) error {
	enforced := meta.FindStatusCondition(said.Conditions, v1alpha1.ConditionEnforced)
	switch {
	case slices.Contains(passing, enforced.Reason):
		return fmt.Errorf("it is not known yet what is in force: %s", enforced.Message)
	case state.Off != nil: // on purpose
		return nil
	case enforced.Status == metav1.ConditionTrue:
		if last := len(state.Exits) - 1; last >= 0 && state.Exits[last].Status == exit.Ejected &&
			state.Exits[last].Time.After(state.Started) && now.Sub(state.Exits[last].Time) < thrownOutFor {
			return fmt.Errorf("the kernel has thrown the scheduler out less than %v ago: %s", thrownOutFor, state.Exits[last].Text)
		}
		return nil
	case said.EnforcedKernelVersion == said.KernelVersion:
		return fmt.Errorf("tiers were enforced here with this kernel, and are not now: %s", enforced.Message)
	}
	return nil
}

// pruned is why the API server has not kept all of a status; nil: it has. An older CustomResourceDefinition has it drop
// without a word what it does not know, and with that what a node could.
func pruned(sent, kept *v1alpha1.TemperNodeStatus) error {
	before, err := runtime.DefaultUnstructuredConverter.ToUnstructured(sent)
	if err != nil {
		return err
	}
	after, err := runtime.DefaultUnstructuredConverter.ToUnstructured(kept)
	if err != nil {
		return err
	}
	if lost := missing("status", before, after); lost != "" {
		return fmt.Errorf("the API server does not keep %s of a TemperNode: its CustomResourceDefinition is older than this agent; apply the one of this version, packaging/kubernetes/crds", lost)
	}
	return nil
}

// missing is the path of a field that one value has and the other has not; "": there is none.
func missing(path string, before, after any) string {
	switch before := before.(type) {
	case map[string]any:
		after, _ := after.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(before)) {
			value, there := after[name]
			if !there {
				return path + "." + name
			}
			if lost := missing(path+"."+name, before[name], value); lost != "" {
				return lost
			}
		}
	case []any:
		after, _ := after.([]any)
		for i := range min(len(before), len(after)) {
			if lost := missing(fmt.Sprintf("%s[%d]", path, i), before[i], after[i]); lost != "" {
				return lost
			}
		}
	}
	return ""
}

// Ready is why the agent is not ready; nil: it is. While the API server is away, what it was told last counts.
func (r *Reporter) Ready() error { return *r.unready.Load() }

// readiness keeps why the agent is not ready, and is loud about a change.
func (r *Reporter) readiness(why error) {
	if before := r.unready.Swap(&why); (*before == nil) != (why == nil) {
		if why == nil {
			r.log.Info("the agent is ready")
		} else {
			r.log.Warn("the agent is not ready", "why", why)
		}
	}
}

// ServeReady answers a kubelet's readiness probes, /readyz at address, until ctx ends.
func ServeReady(ctx context.Context, address string, ready func() error) error {
	listener, err := status.Listen("--ready", address)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ready")
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { server.Close() })
	go func() { _ = server.Serve(listener) }() // it ends with ctx, and so does the agent
	return nil
}
