package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"temper.dev/temper/internal/base/cli"
	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/live"
	"temper.dev/temper/internal/evidence/bench"
	"temper.dev/temper/lab/assets"
	"temper.dev/temper/lab/cache"
	"temper.dev/temper/lab/kernels"
	"temper.dev/temper/lab/run"
	"temper.dev/temper/lab/survey"
)

func newSurveyCommand() *cobra.Command {
	var built, jsonFile, record string
	o := run.SurveyOptions{}
	cmd := &cobra.Command{
		Use:   "survey",
		Short: "Find out on which kernels the scheduler works",
		Long: `Attach the scheduler on kernel after kernel, in fast guests; count the instructions that each kernel's
verifier looks at; and run the functional tests, if --suite names them. Without --kernels it takes the
newest of each series that the archive has, from ` + kernels.DefaultSeries + ` on.

With --check nothing may be worse than recorded: what worked works, and no program takes 10 % more
instructions to verify.`,
		Example: `  temper-lab survey --kernels 6.18,7.0
  temper-lab survey --suite build/guest.test --json records/kernels.json
  temper-lab survey --kernels 6.18 --check records/kernels.json`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			var recorded []survey.Report
			if record != "" {
				if recorded, err = survey.Read(record); err != nil {
					return err
				}
			}
			reports, err := surveyKernels(cmd, run.Options{Assets: assets.Folder(built)}, o)
			if err != nil {
				return err
			}
			if jsonFile != "" {
				if err := keep(jsonFile, reports); err != nil {
					return err
				}
			}
			if err := survey.Write(cmd.OutOrStdout(), reports); err != nil || record == "" {
				return err
			}
			return survey.Check(reports, recorded)
		},
	}
	cmd.Flags().StringSliceVar(&o.Kernels, "kernels", nil, "series, versions or releases (default: the archive's newest of each series)")
	cmd.Flags().StringVar(&o.Suite, "suite", "", "the functional tests, as 'make test-guest' builds them: build/guest.test")
	cmd.Flags().StringVar(&built, "assets", "", "folder that 'make build' filled (default: the one above this program's)")
	cmd.Flags().StringVar(&jsonFile, "json", "", "also write the reports to this file, beside those of other kernels that are there")
	cmd.Flags().StringVar(&record, "check", "", "status 1 if anything is worse than in this file")
	_ = cmd.RegisterFlagCompletionFunc("kernels", completeKernel)
	_ = cmd.MarkFlagDirname("assets")
	return cmd
}

// keep writes reports into a file, beside those of other kernels that are there already.
func keep(file string, reports []survey.Report) error {
	old, err := survey.Read(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return bench.WriteJSON(file, survey.Merge(old, reports))
}

func surveyKernels(cmd *cobra.Command, options run.Options, o run.SurveyOptions) (reports []survey.Report, err error) {
	line := live.NewLine(cmd.ErrOrStderr())
	defer line.End()
	if len(o.Kernels) == 0 {
		c, err := cache.Default()
		if err != nil {
			return nil, err
		}
		if o.Kernels, err = kernels.Newest(cmd.Context(), c); err != nil {
			return nil, err
		}
	}
	options.Notify = line.Show
	next := func() {
		if n := len(reports); n < len(o.Kernels) {
			line.Show(fmt.Sprintf("kernel %d of %d · %s", n+1, len(o.Kernels), o.Kernels[n]))
		}
	}
	next()
	err = run.Survey(cmd.Context(), options, o, func(r survey.Report) {
		reports = append(reports, r)
		next()
	})
	if cmd.Context().Err() != nil {
		return nil, cli.Interrupted()
	}
	if err != nil {
		return nil, err
	}
	if len(reports) == 0 {
		return nil, exit.New(exit.Failed, "", "there is no kernel to try")
	}
	return reports, nil
}
