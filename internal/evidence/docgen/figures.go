package docgen

import (
	"bytes"
	"cmp"
	"errors"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"

	"temper.dev/temper/internal/evidence/bench"
	"temper.dev/temper/internal/evidence/bench/report"
)

// studied is what 'temper-lab study' names a record.
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

// Shown is the plan that the page on stock settings shows: the first of the chain, or the first.
func Shown(s *bench.Summary) *bench.Pooled {
	return firstPool(s, func(c bench.Conditions) bool { return c.Scenario == "chain" })
}

// firstPool is the first plan that fits, or the first.
func firstPool(s *bench.Summary, fits func(bench.Conditions) bool) *bench.Pooled {
	for _, p := range s.Pools {
		if fits(p.Conditions) {
			return p
		}
	}
	return s.Pools[0]
}

// Picture is a plan's chart.
func Picture(p *bench.Pooled) (string, error) {
	var b bytes.Buffer
	err := report.WriteSVG(&b, p)
	return b.String(), err
}

// Page is every plan, bar and the A/A study, as 'temper-lab bench report --bars' prints them.
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

// verdict is the summary's: an item for each plan, one for the bars, and below it one for each bar that fails.
func verdict(s *bench.Summary) string {
	parts := bench.VerdictParts(s.Pools, s.Bars)
	text, failed := bench.BarsVerdict(s.Pools, s.Bars)
	parts[len(parts)-1] = text
	list := ""
	for _, part := range parts {
		list += "- " + bench.Sentence(part) + "\n"
	}
	for _, bar := range failed {
		list += "    - " + bar + "\n"
	}
	return list
}
