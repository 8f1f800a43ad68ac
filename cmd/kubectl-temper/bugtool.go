package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/cluster/bugtool"
)

func newBugtoolCommand() *cobra.Command {
	flags := clusterFlags()
	var file string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "bugtool [NODE...]",
		Short: "Write an archive of what a report of a fault needs",
		Long: `Write an archive of what a report of a fault needs: what 'status' and 'explain' say, TierPolicies, TemperNodes and
PriorityClasses, the agents' DaemonSet, pods, events and logs, the admission policies, and of nodes and namespaces what
matters to tiers. With nodes named, logs are of their agents alone. Of each log the last MiB is kept.

It has nothing of other pods but their names, tiers and reasons, and no Secrets. Look through it before you give it away:
names may tell something, too. What cannot be had is in faults.txt, and does not keep the rest back; where nothing can, the
exit status is 1.`,
		Example: `  kubectl temper bugtool
  kubectl temper bugtool node-7 --output report.tar.gz`,
		ValidArgsFunction: nodeNames(flags),
		RunE: func(cmd *cobra.Command, nodes []string) error {
			now := time.Now()
			if file == "" {
				file = "temper-bugtool-" + now.UTC().Format("20060102-150405") + ".tar.gz"
			}
			if _, _, err := connect(flags); err != nil {
				return err
			}
			config, err := flags.ToRESTConfig()
			if err != nil {
				return exit.New(exit.Config, "", "%w", err)
			}
			bundle, err := bugtool.Collect(cmd.Context(), config, nodes)
			if err != nil {
				return err
			}
			if err := writeBundle(bundle, file, now); err != nil {
				return err
			}
			if asJSON {
				if err := (bugtool.Summary{File: file, Holds: bundle.Names(), Faults: bundle.Faults}).WriteJSON(cmd.OutOrStdout()); err != nil {
					return err
				}
			} else {
				fmt.Fprintf(cmd.OutOrStdout(), "%s holds %d files\n", file, len(bundle.Files))
				for _, fault := range bundle.Faults {
					fmt.Fprintln(cmd.ErrOrStderr(), "kubectl temper: not in it:", fault)
				}
			}
			if bundle.Empty() {
				return exit.New(exit.Failed, "ask somebody who may read the agents' namespace", "nothing of Temper could be had")
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&file, "output", "o", "", "`FILE` to write (default: temper-bugtool-TIME.tar.gz)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	flags.AddFlags(cmd.Flags())
	return cmd
}

// writeBundle leaves no half of an archive behind. What the agents said is for its owner's eyes.
func writeBundle(bundle *bugtool.Bundle, file string, at time.Time) error {
	out, err := os.OpenFile(file, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	folder := strings.TrimSuffix(filepath.Base(file), ".tar.gz")
	if err := errors.Join(bundle.Write(out, folder, at), out.Close()); err != nil {
		return errors.Join(err, os.Remove(file))
	}
	return nil
}
