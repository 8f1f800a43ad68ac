package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/evidence/bench"
	"temper.dev/temper/internal/evidence/bench/benchtest"
)

// temperBench runs 'temper-lab bench' and returns what it prints, its status and its message.
func temperBench(t *testing.T, args ...string) (out string, status int, message string) {
	t.Helper()
	root := newRootCommand()
	var b bytes.Buffer
	root.SetOut(&b)
	root.SetErr(&b)
	root.SetArgs(append([]string{"bench"}, args...))
	err := root.Execute()
	if err != nil {
		message = err.Error()
	}
	return b.String(), exit.StatusOf(err), message
}

func recordFile(t *testing.T, r bench.Record) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "record.json")
	if err := bench.WriteJSON(path, r); err != nil {
		t.Fatal(err)
	}
	return path
}

// flat is a ladder that stays as it is alone, except for p99 at 1 spinner.
func flat(seed int64, loadedP99 float64) bench.Record {
	steps := func(p99 float64) []bench.Step {
		loaded := benchtest.Step(1, p99, 1000)
		loaded.P50 = 5
		return []bench.Step{benchtest.Step(0, 10, 0), loaded}
	}
	return benchtest.Plain("chain", seed, map[string][]bench.Step{"cpuidle": steps(10), "temper": steps(loadedP99)})
}

func TestBenchReport(t *testing.T) {
	good, bad, again := recordFile(t, flat(1, 10)), recordFile(t, flat(2, 20)), recordFile(t, flat(1, 10))
	stockOnly := flat(1, 10)
	stockOnly.Arms = stockOnly.Arms[:1]
	stock := recordFile(t, stockOnly)
	broken := filepath.Join(t.TempDir(), "broken.json")
	if err := os.WriteFile(broken, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args    []string
		status  int
		message string
		out     string // a part of it
	}{
		"table":            {[]string{good}, exit.OK, "", "temper (full)"},
		"verdict":          {[]string{good}, exit.OK, "", "Temper passes all 10 checks of the bars."},
		"bars pass":        {[]string{good, "--check"}, exit.OK, "", "Bars for temper, chain, 2 CPUs"},
		"bars fail":        {[]string{bad, "--check"}, exit.Failed, "2 of 10 checks of the bars fail", "FAIL at 1 of 2 steps"},
		"failing, unasked": {[]string{bad}, exit.OK, "", "Temper fails 2 of 10 checks"},
		"study":            {[]string{"--aa", good + "," + bad}, exit.OK, "", "A/A study, chain, 2 CPUs"},
		"nothing to check": {[]string{stock, "--check"}, exit.Usage, "no bar was checked; give a record with the arm temper", ""},
		"no records":       {nil, exit.Usage, "no records; give a RECORD, or --aa RECORDS", ""},
		"same seed":        {[]string{good, again}, exit.Usage, "two records have seed 1: a run counted twice is no evidence", ""},
		"broken":           {[]string{broken}, exit.Usage, broken + ": unexpected end of JSON input; give a record that 'temper-lab bench run', 'study' or 'ladder --json' wrote", ""},
		"picture of none":  {[]string{"--aa", good + "," + bad, "--svg", broken}, exit.Usage, "--svg draws a ladder, and there is none; give a RECORD", ""},
		"unknown flag":     {[]string{"--what"}, exit.Usage, "unknown flag: --what; see 'temper-lab bench report --help'", ""},
	} {
		t.Run(name, func(t *testing.T) {
			out, status, message := temperBench(t, append([]string{"report"}, test.args...)...)
			if status != test.status || message != test.message || !strings.Contains(out, test.out) {
				t.Errorf("status %d, message %q, output:\n%s", status, message, out)
			}
		})
	}
}

func TestBenchReportWritesFiles(t *testing.T) {
	dir := t.TempDir()
	args := []string{"report", recordFile(t, flat(1, 10)), recordFile(t, flat(2, 10))}
	files := map[string]string{"--html": "<!DOCTYPE html>", "--json": `"schema": "temper.dev/summary/v1"`, "--svg": "<svg xmlns"}
	for flag := range files {
		args = append(args, flag, filepath.Join(dir, flag[2:]))
	}
	if _, status, message := temperBench(t, args...); status != exit.OK {
		t.Fatal(message)
	}
	for flag, part := range files {
		text, err := os.ReadFile(filepath.Join(dir, flag[2:]))
		if err != nil || !strings.Contains(string(text), part) {
			t.Errorf("%s: %v, %.80s", flag, err, text)
		}
	}
}

func TestBenchCompare(t *testing.T) {
	a, b, c := recordFile(t, flat(1, 10)), recordFile(t, flat(1, 10)), recordFile(t, flat(1, 10.001))
	for name, test := range map[string]struct {
		args    []string
		status  int
		message string
		out     string
	}{
		"equal":   {[]string{a, b}, exit.OK, "", "equal: every value of both records is the same\n"},
		"differ":  {[]string{a, c}, exit.Failed, "the records differ in 2 values", "arms[1].steps[1].p90_ms: 8 and 8.0008\narms[1].steps[1].p99_ms: 10 and 10.001\n"},
		"one":     {[]string{a}, exit.Usage, "B is missing; usage: temper-lab bench compare A B [flags]; see 'temper-lab bench compare --help'", ""},
		"missing": {[]string{a, "nowhere"}, exit.Usage, "open nowhere: no such file or directory; give a record that 'temper-lab bench run', 'study' or 'ladder --json' wrote", ""},
	} {
		out, status, message := temperBench(t, append([]string{"compare"}, test.args...)...)
		if status != test.status || message != test.message || out != test.out {
			t.Errorf("%s: status %d, message %q, output:\n%s", name, status, message, out)
		}
	}
}
