package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"temper.dev/temper/internal/base/cli"
	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/pathfence/bench/inlab"
	"temper.dev/temper/pathfence/bench/record"
	"temper.dev/temper/pathfence/bench/trial"
)

func (f *flags) labCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lab --lab FILE --node FILE",
		Short: "Measure the C++ service in guests of the deterministic lab, where other work on this machine changes nothing",
		Args:  cli.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return f.runInLab(cmd) },
	}
	f.choice(cmd)
	f.counting(cmd)
	cmd.Flags().StringVar(&f.lab, "lab", "", "temper-lab, as 'make build' builds it")
	return cmd
}

func (f *flags) guestCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:    "guest --node FILE REPETITION",
		Short:  "What 'lab' runs in a guest: one repetition",
		Hidden: true,
		Args:   cli.Args("REPETITION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			repetition, err := strconv.Atoi(args[0])
			if err != nil {
				return exit.New(exit.Usage, "", "no repetition: %w", err)
			}
			study, err := f.labStudy()
			if err != nil {
				return exit.New(exit.Usage, "see --help", "%w", err)
			}
			return inlab.Play(cmd.Context(), cmd.OutOrStdout(), study, repetition)
		},
	}
	f.choice(cmd)
	return cmd
}

// labStudy is what is measured in the lab, where all takes three times as long: the arms and disturbances that decide.
func (f *flags) labStudy() (s trial.Study, err error) {
	s = trial.Study{
		Programs: trial.Programs{Node: f.node, Service: []string{f.node, "service"}}, Language: "cpp",
		Scale: trial.Standard, Timeline: trial.Lab, Repetitions: f.repetitions, Seed: f.seed,
	}
	disturbances := trial.LabDisturbances
	if s.Arms, err = trial.Languages[s.Language].Named(trial.LabArms); err != nil {
		return s, err
	}
	if f.quick {
		s.Repetitions, s.Arms, disturbances = 1, trial.Languages[s.Language].Quick(), trial.QuickLabDisturbances
	}
	return s, f.choose(&s, disturbances)
}

func (f *flags) runInLab(cmd *cobra.Command) error {
	study, err := f.labStudy()
	if err != nil {
		return exit.New(exit.Usage, "see 'bench lab --help'", "%w", err)
	}
	folder, err := os.MkdirTemp("", "pathfence-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	guest := inlab.Guest{Lab: f.lab, Log: cmd.ErrOrStderr()}
	if guest.Files, err = inlab.Pack(self, f.node, folder); err != nil {
		return exit.New(exit.Usage, "build it with 'make pathfence-bench-build'", "%w", err)
	}
	m := record.Machine{CPUs: inlab.CPUs, Lab: true}
	if m.Hashes, err = guest.Files.Hashes(); err != nil {
		return err
	}
	r, err := f.begin(cmd, study, m)
	if err != nil {
		return err
	}
	err = guest.Do(cmd.Context(), study, f.guestArguments(), &r, func() error { return f.keep(r) })
	switch {
	case cmd.Context().Err() != nil:
		return cli.Interrupted()
	case err != nil:
		return exit.New(exit.Failed, "", "%w", err)
	}
	return f.report(cmd.OutOrStdout(), r)
}

// guestArguments tell the guest's bench what is measured.
func (f *flags) guestArguments() []string {
	arguments := []string{"guest", "--node", inlab.Node, "--seed", fmt.Sprint(f.seed), "--repetitions", fmt.Sprint(f.repetitions)}
	for _, arm := range f.arms {
		arguments = append(arguments, "--arm", arm)
	}
	for _, d := range f.disturbances {
		arguments = append(arguments, "--disturbance", d)
	}
	if f.quick {
		arguments = append(arguments, "--quick")
	}
	return slices.Clip(arguments)
}
