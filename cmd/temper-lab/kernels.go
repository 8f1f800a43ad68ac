package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"temper.dev/temper/internal/base/cli"
	"temper.dev/temper/lab/cache"
	"temper.dev/temper/lab/kernels"
)

func newKernelsCommand() *cobra.Command {
	var asJSON bool
	var fetch string
	cmd := &cobra.Command{
		Use:   "kernels",
		Short: "List the kernels that the lab can boot, or fetch one",
		Long: `List Debian's cloud kernels, newest first, as the archive has them now, and those in the cache. The
archive drops old versions, the cache keeps them. A ladder uses the newest cached kernel of its series
and fetches only where there is none; --fetch moves a series on to the archive's newest.

Every download is verified by the signature of Debian's archive.`,
		Example: `  temper-lab kernels
  temper-lab kernels --fetch 6.18
  temper-lab kernels --json | jq -r '.[] | select(.cached).release'`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := cache.Default()
			if err != nil {
				return err
			}
			if fetch != "" {
				return fetchKernel(cmd.Context(), cmd.OutOrStdout(), c, fetch)
			}
			found, problems := kernels.Available(cmd.Context(), c)
			if err := cmd.Context().Err(); err != nil {
				return cli.Interrupted()
			}
			if len(found) == 0 && len(problems) > 0 {
				return problems[0]
			}
			for _, p := range problems {
				fmt.Fprintln(cmd.ErrOrStderr(), "temper-lab: not listed:", p)
			}
			return writeKernels(cmd.OutOrStdout(), found, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().StringVar(&fetch, "fetch", "", "fetch the newest kernel of this series, version or release")
	_ = cmd.RegisterFlagCompletionFunc("fetch", completeKernel)
	return cmd
}

func fetchKernel(ctx context.Context, w io.Writer, c cache.Folder, want string) error {
	k, err := kernels.Fetch(ctx, c, want)
	if ctx.Err() != nil {
		return cli.Interrupted()
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", kernels.Vmlinuz(c, k))
	return err
}

func writeKernels(w io.Writer, list []kernels.Kernel, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(list)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "SERIES\tRELEASE\tSUITE\tCACHED")
	for _, k := range list {
		suite, cached := k.Suite, "no"
		if suite == "" {
			suite = "-"
		}
		if k.Cached {
			cached = "yes"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", k.Series, k.Release, suite, cached)
	}
	return t.Flush()
}
