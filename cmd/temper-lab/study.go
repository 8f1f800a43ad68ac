package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/lab/run"
)

func newStudyCommand() *cobra.Command {
	var machine machineFlags
	var flags planFlags
	var seeds string
	study := run.Study{}
	cmd := &cobra.Command{
		Use:   "study SCENARIO",
		Short: "Run one ladder under many seeds, a record each",
		Long: `Run one ladder under many seeds and write one record for each. In the lab the same seed gives the
same figures, so a repetition is another seed, and the spread over seeds is what a difference has to
exceed. With one arm given twice, that is an A/A study.

A study can be interrupted: run again, it skips the seeds that are recorded, and refuses a folder
with records of anything else (another kernel, guest, or plan).` + describePlan(),
		Example: `  temper-lab study chain --arms eevdf,eevdf --seeds 1-10 --out records/aa
  temper-lab study memcached --load 0.8 --cpus 4 --seeds 1-3,7 --out records/memcached --jobs 2`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if study.Plan, err = flags.plan(cmd, args[0]); err != nil {
				return err
			}
			if study.Seeds, err = parseSeeds(seeds); err != nil {
				return err
			}
			if study.Out == "" {
				return exit.New(exit.Usage, "name one with --out", "a study needs a folder for its records")
			}
			if study.Jobs < 1 {
				return exit.New(exit.Usage, "", "jobs must be at least 1, not %d", study.Jobs)
			}
			show := newStudyProgress(cmd.ErrOrStderr(), study)
			o := machine.options()
			o.Notify = show.Line.Show
			machineReady, err := run.Open(cmd.Context(), o, study.Plan.Arms)
			if err != nil {
				return err
			}
			err = machineReady.Study(cmd.Context(), study, show.update)
			show.End()
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d records are in %s\n", len(study.Seeds), study.Out)
			return err
		},
	}
	scenarioArg(cmd)
	machine.register(cmd)
	flags.register(cmd)
	cmd.Flags().StringVar(&seeds, "seeds", "1-10", "seeds to run: numbers and ranges")
	cmd.Flags().StringVar(&study.Out, "out", "", "folder for the records")
	cmd.Flags().IntVar(&study.Jobs, "jobs", 2, "guests to run at a time; each keeps one host CPU busy")
	_ = cmd.MarkFlagDirname("out")
	return cmd
}

// parseSeeds reads "1-3,7".
func parseSeeds(text string) ([]int64, error) {
	var seeds []int64
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			last = first
		}
		a, errA := strconv.ParseInt(first, 10, 64)
		b, errB := strconv.ParseInt(last, 10, 64)
		if errA != nil || errB != nil || b < a || b-a > 10_000 {
			return nil, exit.New(exit.Usage, "write numbers and ranges, like 1-3,7", "%q is no list of seeds", text)
		}
		for ; a <= b; a++ {
			seeds = append(seeds, a)
		}
	}
	return seeds, nil
}
