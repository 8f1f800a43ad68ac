package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"temper.dev/temper/internal/base/cli"
	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/base/live"
	"temper.dev/temper/internal/capacity/consolidate"
	"temper.dev/temper/internal/cluster/preflight"
)

func (f *consolidateFlags) runCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Empty nodes: cordon them, evict their pods one after another, and stop where something is not as planned",
		Long: `Empty nodes: make a plan, show it, and ask; or with --plan take the one that 'plan --json' has written. All of its nodes are
cordoned. Then the planner looks again, and pods are evicted one after another. The next waits until the one before has
ended, its successor has a node, and its PodDisruptionBudget allows it.

A node is released again where the planner does not confirm it any more, or a pod does not leave within --pod-timeout. The
whole plan ends where a pod finds no node. Interrupt it, and the nodes that are not empty yet are uncordoned; run it again,
and it goes on with what is left. One process at a time does this in a cluster. What one has left that was killed is taken
back by the next 'run' or 'rollback'.

Emptied nodes stay cordoned. It names their machines: delete those, and then the Nodes.

Exit status: 0 where all nodes were emptied; 1 where one was not, the plan does not hold any more, or the cluster does not
answer; 2 for wrong flags, and where it may not ask; 9 where no kubeconfig names a cluster; 130 where it was interrupted.`,
		Example: `  kubectl temper consolidate run --dry-run
  kubectl temper consolidate run --nodes node-3,node-7
  kubectl temper consolidate run --plan plan.json --yes`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	f.addSearchFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.file, "plan", "", "carry out the plan in this file and no other, if it still holds")
	flags.BoolVar(&f.yes, "yes", false, "ask nothing")
	flags.BoolVar(&f.dryRun, "dry-run", false, "show the plan, and change nothing")
	flags.BoolVar(&f.asJSON, "json", false, "print what became of the nodes as JSON")
	flags.DurationVar(&f.timing.Plan, "timeout", f.timing.Plan, "how long all of it may take")
	flags.DurationVar(&f.timing.Pod, "pod-timeout", f.timing.Pod, "how long one pod may take to leave, and to be placed anew")
	f.addLease(cmd)
	cli.Exclusive(cmd, "plan", "nodes")
	return cmd
}

func (f *consolidateFlags) rollbackCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rollback [NODE...]",
		Short: "Uncordon the nodes that Temper has cordoned, and no others",
		Long: `Uncordon the nodes that 'run' has cordoned: emptied ones, and those that a killed 'run' has left. With nodes named, it does so
with these alone. Evicted pods stay where they are now.

A cordon that is not Temper's stays: of such a node only the annotation is removed, and it is named. It refuses while a 'run'
is at work, and waits up to 45 seconds to see whether that one lives.

Exit status: 0 where nothing of Temper's is left on the nodes; 1 where something is, a named node is not cordoned by Temper, or
the cluster does not answer; 9 where no kubeconfig names a cluster.`,
		Example: `  kubectl temper consolidate rollback
  kubectl temper consolidate rollback node-7`,
		RunE: func(cmd *cobra.Command, names []string) error { return f.rollback(cmd, names) },
	}
	f.addLease(cmd)
	return cmd
}

func (f *consolidateFlags) addLease(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.namespace, "lease-namespace", preflight.Namespace, "the namespace of the Lease by which one process at a time does this")
}

func (f *consolidateFlags) run(cmd *cobra.Command) error {
	if err := f.checkSearch(); err != nil {
		return err
	}
	if f.timing.Plan <= 0 || f.timing.Pod <= 0 {
		return exit.New(exit.Usage, "use 1h and 10m", "--timeout %v and --pod-timeout %v leave no time", f.timing.Plan, f.timing.Pod)
	}
	e, err := f.connect()
	if err != nil {
		return err
	}
	p, err := f.chosen(cmd, e)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if f.asJSON {
		out = cmd.ErrOrStderr()
	}
	f.show(out, p)
	switch {
	case f.dryRun || len(p.Spec.Nodes) == 0:
		return nil
	case !f.yes:
		if err := confirm(cmd, fmt.Sprintf("Empty %s?", strings.Join(p.Names(), ", "))); err != nil {
			return err
		}
	}
	following, end := f.follow(cmd)
	e.Say = following
	// A terminal that is closed, and a pipe whose reader has ended, are interrupts, too: the nodes are taken back.
	signals := []os.Signal{syscall.SIGPIPE}
	if !signal.Ignored(syscall.SIGHUP) { // by nohup
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), signals...)
	o, err := e.Run(ctx, p)
	stop()
	end()
	if o == nil {
		return f.refused(err)
	}
	if f.asJSON {
		err = errors.Join(err, printJSON(cmd, o))
	} else {
		writeOutcome(cmd.OutOrStdout(), o, p)
	}
	if err == nil && len(o.Kept) > 0 {
		return exit.New(exit.Failed, "what keeps them is above; run it again once that is gone", "%d of %d nodes were not emptied", len(o.Kept), len(o.Planned))
	}
	return err
}

// chosen is the plan of the file, or one that is made now.
func (f *consolidateFlags) chosen(cmd *cobra.Command, e *consolidate.Executor) (*consolidate.Plan, error) {
	if f.file == "" {
		return f.find(cmd, e)
	}
	file, err := os.Open(f.file)
	if err != nil {
		return nil, exit.New(exit.Usage, "", "%w", err)
	}
	defer file.Close()
	p, err := consolidate.Read(file)
	if err != nil {
		return nil, exit.New(exit.Usage, "write it by 'kubectl temper consolidate plan --json'", "%s: %w", f.file, err)
	}
	return p, nil
}

// refused says what to do where nothing was changed.
func (f *consolidateFlags) refused(err error) error {
	if held, ok := errors.AsType[*consolidate.HeldError](err); ok {
		return exit.New(exit.Failed, "interrupt that one, or wait for it", "%w", held)
	}
	return err
}

// follow shows how far a plan has come, and how much time it has.
func (f *consolidateFlags) follow(cmd *cobra.Command) (say func(consolidate.Progress), end func()) {
	log := newProgress(cmd.ErrOrStderr())
	ctx, stop := context.WithCancel(cmd.Context())
	last := time.Now().Add(f.timing.Plan)
	var kept sync.WaitGroup
	kept.Go(func() { log.keep(ctx) })
	say = func(p consolidate.Progress) {
		log.say(func() string {
			text := host.Printable(p.Doing)
			if p.Nodes == 0 {
				return text
			}
			return fmt.Sprintf("%d of %d nodes, %d of %d pods, at most %s left: %s", p.Emptied, p.Nodes, p.Moved, p.Moves, live.Clock(max(0, time.Until(last))), text)
		})
	}
	return say, func() { stop(); kept.Wait(); log.end() }
}

func writeOutcome(out io.Writer, o *consolidate.Outcome, p *consolidate.Plan) {
	fmt.Fprintf(out, "Emptied %d of %d nodes; %d pods evicted.\n", len(o.Emptied), len(o.Planned), o.Moved)
	for _, kept := range o.Kept {
		fmt.Fprintf(out, "  %s was released: %s\n", kept.Node, host.Printable(strings.Join(kept.Reasons, "; ")))
	}
	if len(o.Emptied) == 0 {
		return
	}
	fmt.Fprintln(out, "These stay cordoned. Nothing in this cluster deletes their machines: do so where they were made, and delete the Nodes then.")
	for _, node := range p.Spec.Nodes {
		if !slices.Contains(o.Emptied, node.Name) {
			continue
		}
		machine := node.Machine
		if machine == "" {
			machine = "no provider names its machine"
		}
		fmt.Fprintf(out, "  %s  %s\n", node.Name, host.Printable(machine))
	}
	fmt.Fprintln(out, "'kubectl temper consolidate rollback' uncordons them.")
}

func (f *consolidateFlags) rollback(cmd *cobra.Command, names []string) error {
	e, err := f.connect()
	if err != nil {
		return err
	}
	following, end := f.follow(cmd)
	e.Say = following
	released, err := e.Rollback(cmd.Context(), names...)
	end()
	out := cmd.OutOrStdout()
	for _, r := range released {
		what := "uncordoned"
		if !r.Uncordoned {
			what = "left as it is: its cordon is somebody else's, or was ended"
		}
		fmt.Fprintf(out, "node %s: %s\n", r.Node, what)
	}
	if err == nil && len(released) == 0 && len(names) == 0 {
		fmt.Fprintln(out, "No node is cordoned by Temper.")
	}
	missing := slices.DeleteFunc(slices.Sorted(slices.Values(names)), func(name string) bool {
		return slices.ContainsFunc(released, func(r consolidate.Released) bool { return r.Node == name })
	})
	if err == nil && len(missing) > 0 {
		return exit.New(exit.Failed, "'kubectl get nodes' shows nodes and names", "not cordoned by Temper: %s", strings.Join(missing, ", "))
	}
	return f.refused(err)
}
