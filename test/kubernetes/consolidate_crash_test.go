//go:build kubernetes

package kubernetes

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/capacity/consolidate"
	"temper.dev/temper/internal/capacity/sample"
)

var crashes = flag.Int("consolidate-crashes", 0, "after how many writes a process is cut off, from 1 on and over again; 0: after each write of one plan")

// cut breaks a process off from the API server once it has made so many writes. It never learns of the last.
type cut struct {
	http.RoundTripper
	after *atomic.Int64
	ended context.CancelFunc
}

var errCut = errors.New("cut off")

func (c cut) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.after.Load() == 0 {
		return nil, errCut
	}
	answer, err := c.RoundTripper.RoundTrip(r)
	if r.Method == http.MethodGet || c.after.Add(-1) > 0 {
		return answer, err
	}
	c.after.Store(0)
	c.ended()
	if err == nil {
		answer.Body.Close()
	}
	return nil, errCut
}

// A process that is cut off after any of its writes, and never writes again, leaves nothing that a sweep does not take back.
// Others' cordons are not even written to. Another run then empties what was planned.
func TestConsolidationIsCutOff(t *testing.T) {
	c := consolidationCluster(t)
	timing := testTiming
	timing.Lease, timing.Back = 2*time.Second, time.Millisecond
	cuts := 0
	for after := int64(1); ; after++ {
		c.fill()
		others := c.node("d").ResourceVersion
		ctx, stop := context.WithCancel(t.Context())
		left := &atomic.Int64{}
		left.Store(after)
		dead := c.executor("dead", func(next http.RoundTripper) http.RoundTripper { return cut{next, left, stop} })
		dead.Timing = timing
		_, err := dead.Run(ctx, c.plan())
		stop()
		wasCut := left.Load() == 0
		c.sweep(timing)
		all, emptied := c.cordoned()
		if want := append(slices.Clone(emptied), "d"); !slices.Equal(all, want) {
			t.Errorf("cut off after %d writes: cordoned are %v, want %v", after, all, want)
		}
		if got := c.node("d").ResourceVersion; got != others {
			t.Errorf("cut off after %d writes: somebody has written to the node that others have cordoned", after)
		}
		c.finish(timing, after)
		c.empty()
		if wasCut {
			cuts++
		} else if err != nil {
			t.Errorf("with %d writes and more: %v", after, err)
		}
		if *crashes == 0 && !wasCut || *crashes > 0 && cuts == *crashes {
			break
		}
		if !wasCut {
			after = 0
		}
	}
	if cuts < 8 {
		t.Errorf("cut off %d times, want one for each write: the Lease, 2 cordons, 3 evictions, 2 nodes that are empty", cuts)
	}
	t.Logf("cut off %d times", cuts)
}

// sweep takes back what is left, again where the machine is too busy to keep a Lease that short.
func (c *consolidating) sweep(timing consolidate.Timing) {
	c.Helper()
	eventually(c.T, "what is left is taken back", func() bool {
		e := c.executor("sweeper", nil)
		e.Timing = timing
		_, err := e.Sweep(c.Context())
		return err == nil
	})
}

// finish empties what is still to be emptied.
func (c *consolidating) finish(timing consolidate.Timing, after int64) {
	c.Helper()
	c.running()
	p := c.plan()
	if len(p.Spec.Nodes) > 0 {
		e := c.executor("next", nil)
		e.Timing = testTiming
		if o, err := e.Run(c.Context(), p); err != nil || len(o.Kept) > 0 {
			c.Errorf("cut off after %d writes, and run again: %v, %+v", after, err, o)
		}
	}
	c.running()
	if _, emptied := c.cordoned(); !slices.Equal(emptied, []string{"a", "b"}) {
		c.Errorf("cut off after %d writes, and run again: emptied are %v, want a b; the plan kept %+v", after, emptied, p.Status.Kept)
	}
}

// Of two at once, one carries the plan out, and the other refuses and changes nothing.
func TestTwoConsolidationsAtOnce(t *testing.T) {
	c := consolidationCluster(t)
	c.fill()
	p := c.plan()
	var outcomes [2]*consolidate.Outcome
	var errs [2]error
	var both sync.WaitGroup
	for i := range outcomes {
		e := c.executor(fmt.Sprint("owner-", i), nil)
		both.Go(func() { outcomes[i], errs[i] = e.Run(t.Context(), p) })
	}
	both.Wait()
	done := 0
	for i, o := range outcomes {
		switch held, _ := errors.AsType[*consolidate.HeldError](errs[i]); {
		case o != nil && errs[i] == nil && len(o.Emptied) == 2:
			done++
		case held == nil && !strings.Contains(fmt.Sprint(errs[i]), "does not hold any more"):
			t.Errorf("the other ends with %+v and %v", o, errs[i])
		}
	}
	all, emptied := c.cordoned()
	if done != 1 || !slices.Equal(emptied, []string{"a", "b"}) || !slices.Equal(all, []string{"a", "b", "d"}) {
		t.Errorf("%d have carried it out, emptied are %v, cordoned %v; want 1, a b, a b d", done, emptied, all)
	}
	// What a dead process has left is taken back; what is emptied stays, until it is rolled back.
	c.sweep(testTiming)
	if _, emptied := c.cordoned(); len(emptied) != 2 {
		t.Errorf("after a sweep %v are emptied, want a b", emptied)
	}
	released, err := c.executor("three", nil).Rollback(t.Context())
	if all, _ := c.cordoned(); err != nil || len(released) != 2 || !slices.Equal(all, []string{"d"}) {
		t.Errorf("rolled back: %v, %v; cordoned are %v, want d", released, err, all)
	}
}

// The commands, as a user types them; and a run that is killed while it waits for a pod.
func TestConsolidateCommands(t *testing.T) {
	c := consolidationCluster(t)
	c.fill()
	command := func(want int, words string, args ...string) string {
		t.Helper()
		out, said, status := kubectlTemper(t, c.kubeconfig, append([]string{"consolidate"}, args...)...)
		if status != want || !strings.Contains(out+said, words) {
			t.Errorf("%v: status %d, want %d, and %q:\n%s%s", args, status, want, words, out, said)
		}
		return out
	}
	command(exit.OK, "somebody has cordoned it", "plan")
	command(exit.OK, "a", "run", "--dry-run")
	command(exit.Usage, "--yes", "run")
	command(exit.Failed, "there is no node", "plan", "--nodes", "x")
	file := filepath.Join(t.TempDir(), "plan.json")
	if err := os.WriteFile(file, []byte(command(exit.OK, consolidate.Kind, "plan", "--json")), 0o600); err != nil {
		t.Fatal(err)
	}
	c.budget("none", "b1", 0)
	command(exit.Failed, "does not hold any more", "run", "--plan", file, "--yes")
	c.must(c.DeleteAllOf(t.Context(), &policyv1.PodDisruptionBudget{}, client.InNamespace(sample.Namespace)))

	killed := exec.Command(root+"/bin/kubectl-temper", "consolidate", "run", "--plan", file, "--yes", "--kubeconfig", c.kubeconfigFile())
	c.endStuck(killed, func() { c.must(killed.Process.Kill()) })
	if !c.node("b").Spec.Unschedulable {
		t.Error("node b is not cordoned while its pod is evicted")
	}
	command(exit.OK, "node b: uncordoned", "rollback")
	if all, _ := c.cordoned(); !slices.Equal(all, []string{"d"}) {
		t.Errorf("after a rollback cordoned are %v, want d", all)
	}
	c.running()
	command(exit.OK, "Emptied 2 of 2 nodes", "run", "--yes")
	command(exit.OK, "No node can be emptied", "plan")
	command(exit.OK, "node a: uncordoned", "rollback", "a")
	if all, _ := c.cordoned(); !slices.Equal(all, []string{"b", "d"}) {
		t.Errorf("after a rollback of node a cordoned are %v, want b d", all)
	}
	command(exit.OK, "node b: uncordoned", "rollback")
	command(exit.OK, "No node is cordoned by Temper", "rollback")
	command(exit.Failed, "not cordoned by Temper: b, x", "rollback", "x", "b")
}

// Whoever closes the terminal of a run, or ends what reads its output, leaves no node cordoned but emptied ones.
func TestConsolidationIsHungUpOn(t *testing.T) {
	c := consolidationCluster(t)
	for _, tt := range []struct {
		name string
		end  func(run *exec.Cmd, output io.Closer)
	}{
		{"the terminal is closed", func(run *exec.Cmd, _ io.Closer) { c.must(run.Process.Signal(syscall.SIGHUP)) }},
		{"the reader of a pipe has ended", func(_ *exec.Cmd, output io.Closer) { c.must(output.Close()) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c.fill()
			output, input, err := os.Pipe()
			c.must(err)
			run := exec.Command(root+"/bin/kubectl-temper", "consolidate", "run", "--yes", "--pod-timeout", "3s", "--kubeconfig", c.kubeconfigFile())
			run.Stdout, run.Stderr = input, input
			c.endStuck(run, func() { tt.end(run, output) })
			input.Close()
			output.Close()
			if run.ProcessState.Success() {
				t.Error("it says that all went well")
			}
			all, emptied := c.cordoned()
			if want := append(slices.Clone(emptied), "d"); !slices.Equal(all, want) {
				t.Errorf("cordoned are %v, want %v", all, want)
			}
			c.running()
			c.empty()
		})
	}
}

// endStuck ends a run while it waits for a pod that does not end.
func (c *consolidating) endStuck(run *exec.Cmd, end func()) {
	c.Helper()
	pod := c.podOf("b1")
	c.must(c.Patch(c.Context(), pod, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":["temper.dev/test"]}}`))))
	c.must(run.Start())
	eventually(c.T, "the pod is evicted", func() bool {
		c.must(c.Get(c.Context(), client.ObjectKeyFromObject(pod), pod))
		return pod.DeletionTimestamp != nil
	})
	end()
	run.Wait()
	c.must(c.Patch(c.Context(), pod, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
}

func (c *consolidating) kubeconfigFile() string {
	c.Helper()
	file := filepath.Join(c.TempDir(), "kubeconfig")
	c.must(os.WriteFile(file, c.kubeconfig, 0o600))
	return file
}
