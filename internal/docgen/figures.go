package docgen

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"temper.dev/temper/internal/bench"
	"temper.dev/temper/internal/bench/report"
)

// studied is what 'temper lab study' names a record.
var studied = regexp.MustCompile(`-seed\d+\.json$`)

// Superseded is the folder, anywhere below records/, whose records are kept but no longer shown.
const Superseded = "superseded"

// PeersFolder holds ladders of the same plans with other arms, which have a page of their own.
const PeersFolder = "peers"

// Records reads the records below a folder and says what they add up to; nil where there are none.
// A record with one arm twice belongs to the A/A study.
func Records(root string) (*bench.Summary, error) {
	var ladders, aa []bench.Record
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case path == root && errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == Superseded || entry.Name() == PeersFolder && path != root):
			return filepath.SkipDir
		case entry.IsDir() || !studied.MatchString(path):
			return nil
		}
		r, err := bench.ReadRecord(path)
		switch {
		case err != nil:
			return err
		case hasTwins(r):
			aa = append(aa, r)
		case hasTemper(r):
			ladders = append(ladders, r)
		}
		return nil
	})
	if err != nil || len(ladders) == 0 {
		return nil, err
	}
	// A study of many arms comes after the ladders that the claims stand on, wherever its folder is.
	slices.SortStableFunc(ladders, func(a, b bench.Record) int { return cmp.Compare(len(a.Arms), len(b.Arms)) })
	return bench.NewSummary(ladders, aa)
}

func hasTwins(r bench.Record) bool {
	seen := map[string]bool{}
	for _, a := range r.Arms {
		if seen[a.Arm] {
			return true
		}
		seen[a.Arm] = true
	}
	return false
}

func hasTemper(r bench.Record) bool {
	for _, a := range r.Arms {
		if bench.IsOurs(a.Arm) {
			return true
		}
	}
	return false
}

// Shown is the plan that the README shows: the first of the chain, or the first.
func Shown(s *bench.Summary) *bench.Pooled {
	for _, p := range s.Pools {
		if p.Conditions.Scenario == "chain" {
			return p
		}
	}
	return s.Pools[0]
}

// Picture is the shown plan's chart.
func Picture(s *bench.Summary) (string, error) {
	var b bytes.Buffer
	err := report.WriteSVG(&b, Shown(s))
	return b.String(), err
}

// Page is every plan, bar and the A/A study, as 'temper bench report --bars' prints them.
func Page(s *bench.Summary) (string, error) {
	var b bytes.Buffer
	for _, p := range s.Pools {
		if err := p.WriteTable(&b); err != nil {
			return "", err
		}
		b.WriteString("\n")
	}
	if err := bench.WriteBars(&b, s.Bars); err != nil {
		return "", err
	}
	if s.AA != nil {
		b.WriteString("\n")
		if err := s.AA.WriteText(&b); err != nil {
			return "", err
		}
	}
	return "# Figures\n" + notice + verdict(s) + "\nFrom the records in `records/`; [records](records.md) says how the figures come about.\n\n" +
		fence(b.String()), nil
}

// Block is the README's: the picture, and the table behind it.
func Block(s *bench.Summary, picture, page string) string {
	if s == nil {
		return "No records are committed yet; `make records` measures them.\n"
	}
	var b strings.Builder
	p := Shown(s)
	fmt.Fprintf(&b, "![%s: p99 latency and background work against the number of spinners](%s)\n\n", p.Plan(), picture)
	fmt.Fprintf(&b, "%s, kernel %s, %s. p50 / p99 in %s; in brackets, background work over the arm that did most. All plans, bars and the A/A study: [figures](%s).\n\n",
		strings.ToUpper(p.Plan()[:1])+p.Plan()[1:], p.Conditions.Kernel, p.SeedText(), p.TimeUnit(), page)
	b.WriteString("| spinners |")
	for _, a := range p.Arms {
		fmt.Fprintf(&b, " %s (%s) |", a.Label, a.Preempt)
	}
	b.WriteString("\n| --- |" + strings.Repeat(" --- |", len(p.Arms)) + "\n")
	for i := range p.Arms[0].Cells {
		fmt.Fprintf(&b, "| %s |", p.Arms[0].Cells[i].Label())
		for j := range p.Arms {
			fmt.Fprintf(&b, " %s |", cell(p, &p.Arms[j].Cells[i]))
		}
		b.WriteString("\n")
	}
	b.WriteString("\n" + verdict(s))
	return b.String()
}

// verdict is the summary's, a line for each plan and one for the bars.
func verdict(s *bench.Summary) string {
	return "- " + strings.Join(bench.VerdictParts(s.Pools, s.Bars), "\n- ") + "\n"
}

func cell(p *bench.Pooled, c *bench.Cell) string {
	if c.Figures == nil {
		return "invalid"
	}
	text := bench.FormatMS(c.Figures.P50) + " / " + bench.FormatMS(c.Figures.P99)
	if work := p.WorkShare(c); c.Background > 0 && work != nil && !math.IsNaN(work.Value) {
		text += fmt.Sprintf(" (%.2f)", work.Value)
	}
	return text
}
