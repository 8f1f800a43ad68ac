package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"temper.dev/temper/internal/base/cli"
	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/pathfence/bench/page"
	"temper.dev/temper/pathfence/bench/record"
)

func (f *flags) reportCommand() *cobra.Command {
	var html string
	cmd := &cobra.Command{
		Use:   "report FILE...",
		Short: "Show records again: tables and bars, or one page with plots",
		Example: `  bench report records/pathfence/java.json
  bench report records/pathfence/*.json --html report.html`,
		Args: cli.AtLeast("FILE"),
		RunE: func(cmd *cobra.Command, files []string) error {
			records, err := readAll(files)
			if err != nil {
				return err
			}
			if html != "" {
				return f.reportPage(html, records)
			}
			var missed error
			for i, r := range records {
				if len(records) > 1 {
					fmt.Fprintf(cmd.OutOrStdout(), "%s%s\n\n", strings.Repeat("\n", min(i, 1)), r.Name)
				}
				if err := f.report(cmd.OutOrStdout(), r.Record); err != nil {
					missed = err
				}
			}
			return missed
		},
	}
	cmd.Flags().StringVar(&html, "html", "", "write one page with plots, tables and bars to this file instead")
	return cmd
}

func readAll(files []string) (records []page.Named, err error) {
	for _, file := range files {
		r, err := read(file)
		if err != nil {
			return nil, exit.New(exit.Failed, "", "%s: %w", file, err)
		}
		records = append(records, page.Named{Name: strings.TrimSuffix(filepath.Base(file), ".json"), Record: r})
	}
	return records, nil
}

func read(file string) (r record.Record, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, err
	}
	if r.Schema != record.Schema {
		return r, fmt.Errorf("its schema is %q, not %q", r.Schema, record.Schema)
	}
	return r, nil
}

func (f *flags) reportPage(file string, records []page.Named) error {
	if f.regardless {
		return exit.New(exit.Usage, "leave out one of the two", "--html shows results, --regardless what is none")
	}
	if err := writePage(file, records); err != nil {
		return err
	}
	for _, r := range records {
		if err := f.held(r.Bars()); err != nil {
			return err
		}
	}
	return nil
}

func writePage(file string, records []page.Named) (err error) {
	out, err := os.Create(file)
	if err != nil {
		return exit.New(exit.Failed, "", "%w", err)
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	return page.Write(out, records)
}

// report writes the table and the bars; checked, a bar that does not hold is a failure.
func (f *flags) report(w io.Writer, r record.Record) error {
	if f.regardless {
		fmt.Fprintln(w, "What is not valid is counted, too: these are no results.")
		r = r.Regardless()
	}
	bars := r.Bars()
	r.WriteTable(w)
	fmt.Fprintln(w)
	record.WriteBars(w, bars)
	return f.held(bars)
}

// held is a failure where bars are checked and one does not hold.
func (f *flags) held(bars []record.Bar) error {
	for _, b := range bars {
		if f.check && !b.Holds() {
			return exit.New(exit.Failed, "", "not all bars hold")
		}
	}
	return nil
}
