// Command bench measures services that paths share, with and without a fence: README.md.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/spf13/cobra"

	"temper.dev/temper/internal/base/cli"
	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/evidence/bench"
	"temper.dev/temper/pathfence/bench/record"
	"temper.dev/temper/pathfence/bench/trial"
)

func main() { cli.Main(newCommand()) }

type flags struct {
	node, jar, file    string
	lab                string
	arms, disturbances []string
	repetitions        int
	retries            int
	seed               uint64
	quick, check       bool
	instructions       bool
	regardless         bool
}

func newCommand() *cobra.Command {
	var f flags
	root := cli.Prepare(&cobra.Command{
		Use:   "bench --node FILE [--java FILE]",
		Short: "Measure services that several paths share, while a downstream of one of them is slow",
		Args:  cli.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	})
	f.choice(root)
	root.Flags().StringVar(&f.jar, "java", "", "measure the Java service: its jar, as 'make pathfence-bench-java-build' builds it")
	root.Flags().IntVar(&f.retries, "retries", 0, "how often a run that does not count is done again")
	f.counting(root)
	root.PersistentFlags().BoolVar(&f.check, "check", false, "fail if a bar is missed or was not measured")
	root.PersistentFlags().BoolVar(&f.regardless, "regardless", false, "let the table and the bars count what is not valid, too: a look on a busy machine, no result")
	root.AddCommand(f.labCommand(), f.guestCommand(), f.reportCommand())
	return root
}

// choice are the flags that say what is measured.
func (f *flags) choice(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.node, "node", "", "pathfence-bench-node, as 'make pathfence-bench-build' builds it")
	cmd.Flags().StringArrayVar(&f.arms, "arm", nil, "an arm; can be given again (default: those of the table; 'all': the fence without each of its parts, too)")
	cmd.Flags().StringArrayVar(&f.disturbances, "disturbance", nil, "a disturbance; can be given again (default: those of the table; 'traces', 'networks', 'social', 'neighbours', with --java 'shops' and 'media', 'all')")
	cmd.Flags().IntVar(&f.repetitions, "repetitions", 5, "how often all is done")
	cmd.Flags().Uint64Var(&f.seed, "seed", 1, "of the arrivals and of the order of the runs")
	cmd.Flags().BoolVar(&f.quick, "quick", false, "a look: fewer arms and disturbances, shorter runs, once")
	cmd.Flags().StringVar(&f.file, "json", "", "file for the record; written as it grows, gone on with if it is of the same plan, seed and build")
}

func (f *flags) counting(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.instructions, "instructions", false, "count what a request costs the service, too; needs valgrind, and takes a minute")
}

func (f *flags) run(cmd *cobra.Command) error {
	study, err := f.study()
	if err != nil {
		return exit.New(exit.Usage, "see --help", "%w", err)
	}
	if f.instructions && f.jar != "" {
		return exit.New(exit.Usage, "leave out one of the two", "--instructions counts those of the C++ service, not of a Java virtual machine")
	}
	m, err := machine(f.node, f.jar)
	if err != nil {
		return exit.New(exit.Usage, "build it with 'make pathfence-bench-build'", "%w", err)
	}
	r, err := f.begin(cmd, study, m)
	if err != nil {
		return err
	}
	err = study.Do(cmd.Context(), cmd.ErrOrStderr(), r.Rows, func(rows []record.Row) error {
		r.Rows = append(r.Rows, rows...)
		return f.keep(r)
	})
	if err != nil && cmd.Context().Err() == nil {
		return exit.New(exit.Failed, "", "%w", err)
	}
	if err := f.report(cmd.OutOrStdout(), r); err != nil {
		return err
	}
	if cmd.Context().Err() != nil {
		return cli.Interrupted()
	}
	return nil
}

// begin is what the file has of the same plan already, or a record without rows; with instructions, if they are asked for.
func (f *flags) begin(cmd *cobra.Command, study trial.Study, m record.Machine) (r record.Record, err error) {
	r = record.Record{Schema: record.Schema, Seed: f.seed, Plan: study.Plan(), Machine: m}
	if f.file != "" {
		begun, err := read(f.file)
		if err == nil {
			err = r.Resume(begun)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return r, fmt.Errorf("%s: %w", f.file, err)
		}
	}
	if f.instructions && r.Instructions == nil {
		if r.Instructions, err = study.Instructions(cmd.Context(), cmd.ErrOrStderr()); err != nil {
			return r, exit.New(exit.Failed, "", "%w", err)
		}
	}
	return r, nil
}

// keep writes the record, if there is a file for it.
func (f *flags) keep(r record.Record) error {
	if f.file == "" {
		return nil
	}
	return bench.WriteJSON(f.file, r)
}

// java keeps the compiler's work short: what it takes later is no longer the service's.
var java = append(slices.Clip(compiledJava), "-XX:TieredStopAtLevel=1")

// compiledJava is what a service runs as that is up for long: its code is compiled by both compilers. It has no perf data: a JVM
// complains of another's on its standard output, where the ports are to stand.
var compiledJava = []string{"java", "-XX:+UseSerialGC", "-XX:-UsePerfData"}

func service(java []string, jar string) []string {
	return append(slices.Clip(java), "-Xms256m", "-Xmx256m", "-jar", jar)
}

func (f *flags) study() (s trial.Study, err error) {
	s = trial.Study{
		Programs: trial.Programs{Node: f.node, Service: []string{f.node, "service"}}, Language: "cpp",
		Scale: trial.Standard, Timeline: trial.Full, Repetitions: f.repetitions, Retries: f.retries, Seed: f.seed,
	}
	if f.jar != "" {
		s.Language, s.Service, s.Full = "java", service(java, f.jar), service(compiledJava, f.jar)
		s.Shop = append(slices.Clip(java), "-Xms64m", "-Xmx256m", "-XX:+ExitOnOutOfMemoryError", "-cp", f.jar, "dev.temper.pathfence.bench.Shop")
	}
	language := trial.Languages[s.Language]
	s.Arms = language.Table
	disturbances := trial.TableDisturbances
	if f.quick {
		s.Timeline, s.Repetitions = trial.Quick, 1
		s.Arms, disturbances = language.Quick(), trial.QuickDisturbances
	}
	return s, f.choose(&s, disturbances)
}

// choose puts in what was asked for by name, in place of what is usual.
func (f *flags) choose(s *trial.Study, disturbances []string) (err error) {
	if len(f.arms) > 0 {
		if s.Arms, err = trial.Languages[s.Language].Named(f.arms); err != nil {
			return err
		}
	}
	if len(f.disturbances) > 0 {
		disturbances = f.disturbances
	}
	s.Disturbances, err = s.Choose(disturbances)
	return err
}
