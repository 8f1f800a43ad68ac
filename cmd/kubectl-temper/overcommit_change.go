package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/capacity/overcommit"
	"temper.dev/temper/internal/capacity/overcommit/incluster"
)

func (f *overcommitFlags) addChangeFlags(cmd *cobra.Command, dryRun string) {
	cmd.Flags().StringVar(&f.dryRun, "dry-run", "none", dryRun)
}

func (f *overcommitFlags) addTimeout(cmd *cobra.Command, what string) {
	cmd.Flags().DurationVar(&f.timeout, "timeout", time.Minute, what)
}

// isDryRun says whether nothing is to be changed; of is the one kind that a command has.
func (f *overcommitFlags) isDryRun(of string) (bool, error) {
	if f.dryRun != "none" && f.dryRun != of {
		return false, exit.New(exit.Usage, "", "--dry-run %q is neither none nor %s", f.dryRun, of)
	}
	return f.dryRun == of, nil
}

// inForce are the rules by which the cluster's API server lowers pods.
func inForce(ctx context.Context, cluster client.Client) (*overcommit.Rules, error) {
	policies, err := incluster.Read(ctx, cluster)
	if err != nil {
		return nil, err
	}
	rules, err := policies.Lowering()
	if err == nil && rules == nil {
		err = exit.New(exit.Failed, "'kubectl temper overcommit apply' puts one in force", "no overcommit policy is in force in this cluster")
	}
	return rules, err
}

// notKept refuses to change policies that a controller would change back.
func notKept(rules *overcommit.Rules) error {
	if rules == nil || rules.KeptBy == "" {
		return nil
	}
	return exit.New(exit.Failed, "change or delete that; where no controller runs, 'kubectl temper overcommit remove --yes' ends the policies",
		"CapacityPolicy %s keeps the policies, by temper-controller", rules.KeptBy)
}

func writeMade(out io.Writer, made []incluster.Made, would string) {
	for _, m := range made {
		change := would + m.Change
		if m.Change == "unchanged" {
			change = m.Change
		}
		fmt.Fprintf(out, "%s %s: %s\n", m.Kind, m.Name, change)
	}
}

// await shows that it waits.
func (f *overcommitFlags) await(cmd *cobra.Command, cluster client.Client, rules *overcommit.Rules, namespaces map[string]overcommit.Namespace) error {
	p := newProgress(cmd.ErrOrStderr())
	defer p.end()
	p.say(func() string { return "waiting until the API server does what the policy says" })
	return incluster.Await(cmd.Context(), cluster, rules, namespaces, f.timeout)
}

// show prints outcomes: as a table those that are not as wanted, as JSON all.
func (f *overcommitFlags) show(cmd *cobra.Command, outcomes incluster.Outcomes, wanted string) error {
	if f.asJSON {
		return printJSON(cmd, struct {
			Pods incluster.Outcomes `json:"pods"`
		}{append(incluster.Outcomes{}, outcomes...)})
	}
	slices.DeleteFunc(slices.Clone(outcomes), func(o incluster.Outcome) bool { return o.State == wanted }).Write(cmd.OutOrStdout())
	return nil
}

// counting shows how many pods are done: each second on a terminal, each hundred elsewhere.
func counting(cmd *cobra.Command, done string) (count func(n, all int), end func()) {
	p := newProgress(cmd.ErrOrStderr())
	ctx, stop := context.WithCancel(cmd.Context())
	var mu sync.Mutex
	var text string
	said := func() string {
		mu.Lock()
		defer mu.Unlock()
		return text
	}
	var kept sync.WaitGroup
	kept.Go(func() { p.keep(ctx) })
	count = func(n, all int) {
		mu.Lock()
		text = fmt.Sprintf("%d of %d pods %s", n, all, done)
		mu.Unlock()
		if all > 0 && n%100 == 0 {
			p.say(said)
		}
	}
	return count, func() { stop(); kept.Wait(); p.end() }
}
