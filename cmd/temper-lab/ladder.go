package main

import (
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"temper.dev/temper/internal/base/cli"
	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/evidence/bench"
	"temper.dev/temper/lab/run"
)

func newLadderCommand() *cobra.Command {
	var machine machineFlags
	var flags planFlags
	var out string
	cmd := &cobra.Command{
		Use:   "ladder SCENARIO",
		Short: "Run one ladder and show its figures",
		Long: `Run one ladder: boot the lab's machine, warm the service up, and measure it under each arm while
background load rises in steps. Shows a table; --json keeps the record, with every window's histogram
and the hashes of kernel, emulator, guest and BPF object. Equal input gives an equal record.` + describePlan(),
		Example: `  temper-lab ladder chain --arms cpuidle,temper --steps 0,1,4
  temper-lab ladder memcached --load 0.8 --cpus 4 --seed 3 --json record.json
  temper-lab ladder memcached --arms eevdf --steps 0 --seconds 1 --json - | jq .arms[0].steps[0].p99_ms`,
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := flags.plan(cmd, args[0])
			if err != nil {
				return err
			}
			if err := checkOutput(out); err != nil {
				return err
			}
			show := newLadderProgress(cmd.ErrOrStderr())
			record, err := run.Ladder(cmd.Context(), machine.options(), p, show.update)
			show.End()
			if err != nil {
				return err
			}
			return writeRecord(cmd.OutOrStdout(), record, out)
		},
	}
	scenarioArg(cmd)
	machine.register(cmd)
	flags.register(cmd)
	cmd.Flags().Int64Var(&flags.Seed, "seed", 1, "of the arrivals and the order of arms; a repetition is another seed")
	cmd.Flags().StringVar(&out, "json", "", "also write the record to this file; - writes it to standard output instead of the table")
	return cmd
}

// checkOutput finds out before minutes of work that their result could not be written.
func checkOutput(path string) error {
	if path == "" || path == "-" {
		return nil
	}
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		return exit.New(exit.Usage, "make the folder first", "cannot write %s: %w", path, err)
	}
	return nil
}

func writeRecord(stdout io.Writer, r bench.Record, path string) error {
	switch path {
	case "":
	case "-":
		return bench.EncodeJSON(stdout, r)
	default:
		if err := bench.WriteJSON(path, r); err != nil {
			return err
		}
	}
	var options []bench.TableOption
	if cli.Colours(stdout) {
		options = append(options, bench.Colour())
	}
	return bench.WriteTable(stdout, r, options...)
}
