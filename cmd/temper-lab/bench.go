package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"temper.dev/temper/internal/base/cli"
	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/evidence/bench"
	"temper.dev/temper/internal/evidence/bench/report"
)

func newBenchCommand() *cobra.Command {
	cmd := cli.Group(&cobra.Command{
		Use:   "bench",
		Short: "Measure services of your own; show, judge and compare records",
		Long:  `Measure services of your own; show, judge and compare records. A record is what one ladder measured; see docs/records.md.`,
	})
	cmd.AddCommand(newBenchInitCommand(), newBenchRunCommand(), newBenchReportCommand(), newBenchCompareCommand())
	return cmd
}

// benchReport is what the flags of 'temper-lab bench report' ask for.
type benchReport struct {
	html, json, svg string
	bars, check     bool
	aa              []string
	curveStep       int
}

func newBenchReportCommand() *cobra.Command {
	var r benchReport
	cmd := &cobra.Command{
		Use:   "report RECORD...",
		Short: "Add records up: tables, bars and a verdict, as text, HTML or JSON",
		Long: `Add records up and say what they show.

Records of one plan under different seeds are pooled: percentiles come from the pooled histograms, intervals from a
bootstrap over the seeds. Records of several plans (scenario, load, CPUs) are shown one after the other. Records that
should agree and do not (kernel, hashes, window length, arms, steps) are refused.
Invalid windows are left out of every figure, and always listed.

--aa takes records of an A/A study (stock arms, several seeds). It adds the spread that equal arms show by chance and
the window lengths that follow; a bar that lies inside the spread is replaced by the spread. --aa alone shows the study.`,
		Example: `  temper-lab bench report ladder.json
  temper-lab bench report records/chain-2cpu-seed*.json --html report.html --bars
  temper-lab bench report seed1.json seed2.json --aa aa1.json,aa2.json --check
  temper-lab bench report --aa aa1.json,aa2.json --json aa-study.json`,
		RunE: func(cmd *cobra.Command, args []string) error { return r.run(cmd.OutOrStdout(), args) },
	}
	f := cmd.Flags()
	f.StringVar(&r.html, "html", "", "also write one self-contained HTML report to `FILE`")
	f.StringVar(&r.json, "json", "", "also write pooled figures, bars and verdict as JSON to `FILE`; - writes them to standard output instead of the tables")
	f.StringVar(&r.svg, "svg", "", "also write the picture of the first plan to `FILE`")
	f.BoolVar(&r.bars, "bars", false, "also print each bar and the step that decides it")
	f.BoolVar(&r.check, "check", false, "print the bars, and leave with status 1 if one fails")
	f.StringSliceVar(&r.aa, "aa", nil, "`RECORDS` of an A/A study, separated by commas")
	f.IntVar(&r.curveStep, "curve-step", report.WorstStep, "spinners of the step whose latency curve the HTML shows (default: where Temper's p99 is worst)")
	return cmd
}

func (r *benchReport) run(out io.Writer, paths []string) error {
	if len(paths) == 0 && len(r.aa) == 0 {
		return exit.New(exit.Usage, "give a RECORD, or --aa RECORDS", "no records")
	}
	records, err := readRecords(paths)
	if err != nil {
		return err
	}
	aa, err := readRecords(r.aa)
	if err != nil {
		return err
	}
	summary, err := bench.NewSummary(records, aa)
	if err != nil {
		return exit.New(exit.Usage, "", "%w", err)
	}
	if r.json == "-" {
		err = bench.EncodeJSON(out, summary)
	} else {
		err = r.writeText(out, summary)
	}
	if err != nil {
		return err
	}
	if err := r.writeFiles(summary); err != nil {
		return err
	}
	return r.checkBars(summary)
}

func readRecords(paths []string) ([]bench.Record, error) {
	var records []bench.Record
	for _, path := range paths {
		record, err := bench.ReadRecord(path)
		if err != nil {
			return nil, exit.New(exit.Usage, "give a record that 'temper-lab bench run', 'study' or 'ladder --json' wrote", "%w", err)
		}
		records = append(records, record)
	}
	return records, nil
}

func (r *benchReport) writeText(out io.Writer, s *bench.Summary) error {
	var options []bench.TableOption
	if cli.Colours(out) {
		options = append(options, bench.Colour())
	}
	for _, p := range s.Pools {
		if err := p.WriteTable(out, options...); err != nil {
			return err
		}
		fmt.Fprintln(out)
	}
	if (r.bars || r.check) && len(s.Bars) > 0 {
		if err := bench.WriteBars(out, s.Bars); err != nil {
			return err
		}
		fmt.Fprintln(out)
	}
	if s.AA != nil {
		if err := s.AA.WriteText(out); err != nil {
			return err
		}
		fmt.Fprintln(out)
	}
	_, err := fmt.Fprintln(out, s.Verdict)
	return err
}

func (r *benchReport) writeFiles(s *bench.Summary) error {
	if r.json != "" && r.json != "-" {
		if err := bench.WriteJSON(r.json, s); err != nil {
			return err
		}
	}
	if r.html != "" {
		if err := bench.WriteFile(r.html, func(w io.Writer) error { return report.WriteHTML(w, s, r.curveStep) }); err != nil {
			return err
		}
	}
	if r.svg == "" {
		return nil
	}
	if len(s.Pools) == 0 {
		return exit.New(exit.Usage, "give a RECORD", "--svg draws a ladder, and there is none")
	}
	return bench.WriteFile(r.svg, func(w io.Writer) error { return report.WriteSVG(w, s.Pools[0]) })
}

func (r *benchReport) checkBars(s *bench.Summary) error {
	if !r.check {
		return nil
	}
	if len(s.Bars) == 0 {
		return exit.New(exit.Usage, "give a record with the arm temper", "no bar was checked")
	}
	if failed := bench.Failed(s.Bars); len(failed) > 0 {
		return exit.New(exit.Failed, "", "%d of %d checks of the bars fail", len(failed), len(s.Bars))
	}
	return nil
}

func newBenchCompareCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "compare A B",
		Short: "Say whether two records are equal to the last digit",
		Long: `Say whether two records are equal to the last digit, and where they differ if not. The lab is deterministic: the same
plan and seed on the same kernel, emulator, guest and BPF object give the same record on any host.
Status 0: equal. Status 1: they differ.`,
		Example: `  temper-lab bench compare first.json again.json`,
		Args:    cli.Args("A", "B"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return compareRecords(cmd.OutOrStdout(), args[0], args[1])
		},
	}
}

func compareRecords(out io.Writer, a, b string) error {
	var texts [2][]byte
	for i, path := range []string{a, b} {
		if _, err := readRecords([]string{path}); err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		texts[i] = text
	}
	differences, err := bench.Compare(texts[0], texts[1])
	if err != nil {
		return err
	}
	if len(differences) == 0 {
		fmt.Fprintln(out, "equal: every value of both records is the same")
		return nil
	}
	for _, d := range differences {
		fmt.Fprintln(out, d)
	}
	return exit.New(exit.Failed, "", "the records differ in %d values", len(differences))
}
