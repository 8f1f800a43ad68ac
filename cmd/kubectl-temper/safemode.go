package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/base/exit"
)

func newSafeModeCommand() *cobra.Command {
	flags := clusterFlags()
	cmd := &cobra.Command{
		Use:   "safe-mode NODE... on|off",
		Short: "Leave nodes to the kernel's own scheduler, or end that",
		Long: `With 'on' the nodes have the kernel's own scheduler, until 'off': their agents detach Temper's, and attach it no more,
whatever is restarted. It sets the label ` + v1alpha1.SafeModeLabel + ` of the Node; kubectl label does the same, also by selector.

Where the API server is away, 'temper safe-mode' does it on the node itself.`,
		Example: `  kubectl temper safe-mode node-7 on
  kubectl label nodes --all ` + v1alpha1.SafeModeLabel + `=true    # all of them
  kubectl temper status node-7`,
		ValidArgsFunction: nodesAndState(flags),
		RunE: func(cmd *cobra.Command, args []string) error {
			on, nodes, err := parseSafeMode(args)
			if err != nil {
				return err
			}
			cluster, _, err := connect(flags)
			if err != nil {
				return orOnTheNode(err)
			}
			var failed []error // and go on: in a hurry the others matter most
			for _, name := range nodes {
				node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
				if err := cluster.Patch(cmd.Context(), node, labelPatch(on)); err != nil {
					failed = append(failed, orOnTheNode(err))
					continue
				}
				fmt.Fprintf(cmd.OutOrStdout(), "safe mode of %s is %s; see 'kubectl temper status %s'\n", name, args[len(args)-1], name)
			}
			return errors.Join(failed...)
		},
	}
	flags.AddFlags(cmd.Flags())
	return cmd
}

// orOnTheNode names what to do where it is not the API server that refuses.
func orOnTheNode(err error) error {
	if _, has := errors.AsType[*exit.Error](err); has || apierrors.ReasonForError(err) != metav1.StatusReasonUnknown {
		return err
	}
	return exit.New(exit.Failed, "'temper safe-mode on' does it on the node itself", "%w", err)
}

// nodesAndState completes names of nodes and, after one, what their safe mode is to be.
func nodesAndState(flags *genericclioptions.ConfigFlags) cobra.CompletionFunc {
	nodes := nodeNames(flags)
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		names, directive := nodes(cmd, args, word)
		if len(args) > 0 {
			return append(names, "on", "off"), cobra.ShellCompDirectiveNoFileComp
		}
		return names, directive
	}
}

func parseSafeMode(args []string) (on bool, nodes []string, err error) {
	if len(args) >= 2 {
		switch last := len(args) - 1; args[last] {
		case "on":
			return true, args[:last], nil
		case "off":
			return false, args[:last], nil
		}
	}
	return false, nil, exit.New(exit.Usage, "see 'kubectl temper safe-mode --help'", "name nodes, and then on or off")
}

// labelPatch sets the label, or removes it.
func labelPatch(on bool) client.Patch {
	value := map[string]any{v1alpha1.SafeModeLabel: nil}
	if on {
		value[v1alpha1.SafeModeLabel] = "true"
	}
	text, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": value}})
	if err != nil {
		panic(err) // strings alone
	}
	return client.RawPatch("application/merge-patch+json", text)
}
