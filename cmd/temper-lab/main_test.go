package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/evidence/bench"
	"temper.dev/temper/lab/plan"
	"temper.dev/temper/lab/run"
)

func TestParseSeeds(t *testing.T) {
	got, err := parseSeeds("1-3, 7")
	if err != nil || !slices.Equal(got, []int64{1, 2, 3, 7}) {
		t.Errorf("got %v, %v", got, err)
	}
	for _, bad := range []string{"", "3-1", "x", "1-", "1-99999999"} {
		if _, err := parseSeeds(bad); exit.StatusOf(err) != exit.Usage {
			t.Errorf("%q: got %v", bad, err)
		}
	}
}

func TestParseFiles(t *testing.T) {
	got, err := parseFiles([]string{"/etc/a=b=c"})
	if err != nil || got["/etc/a"] != "b=c" {
		t.Errorf("got %v, %v", got, err)
	}
	for _, bad := range []string{"a=b", "/a", "/a="} {
		if _, err := parseFiles([]string{bad}); exit.StatusOf(err) != exit.Usage {
			t.Errorf("%q: got %v", bad, err)
		}
	}
}

func TestCompleteArms(t *testing.T) {
	names, directive := completeArms(nil, nil, "eevdf,cpu")
	if len(names) != len(plan.Arms) || !strings.HasPrefix(names[0], "eevdf,eevdf\t") || directive&cobra.ShellCompDirectiveNoSpace == 0 {
		t.Errorf("got %q", names)
	}
}

// Bad input to any lab command is a usage error with one line, before anything is fetched or booted.
func TestLabUsageErrors(t *testing.T) {
	for _, args := range []string{
		"nonsense", "ladder", "ladder nginx", "ladder chain --arms cfs", "ladder chain --load 0.5",
		"ladder memcached --load 7", "ladder chain --cpus 24", "ladder chain --steps 0,x", "ladder chain --json /nonexistent/r.json",
		"study chain", "study chain --seeds x --out d", "study chain --jobs 0 --out d", "exec", "exec --cpus 0 -- true", "exec --file x -- true",
		"kernels extra", "chaos extra", "chaos --seeds 0", "chaos --seeds x", "chaos --cpus 5", "chaos --operations 0",
	} {
		root := newRootCommand()
		root.SetArgs(strings.Fields(args))
		root.SetOut(new(bytes.Buffer))
		root.SetErr(new(bytes.Buffer))
		err := root.ExecuteContext(t.Context())
		if exit.StatusOf(err) != exit.Usage || strings.Contains(err.Error(), "\n") {
			t.Errorf("temper-lab %s: got status %d, %v", args, exit.StatusOf(err), err)
		}
	}
}

func TestProgressInALogIsPlainLines(t *testing.T) {
	var out bytes.Buffer
	p := newLadderProgress(&out)
	p.update(run.Progress{Stage: "measuring", Done: 1, Total: 4, Left: 90 * time.Second, Window: &plan.Window{
		Arm: "eevdf", Step: bench.Step{Background: 2, P50: 4.5, P99: 12.34, InvalidReason: "no request was answered"},
	}})
	p.End()
	want := "  0:00  measuring · 1 of 4 windows · about 1:30 left · eevdf, 2 in the background: p50 4.5 ms, p99 12.3 ms (does not count: no request was answered)\n"
	if out.String() != want {
		t.Errorf("got  %q\nwant %q", out.String(), want)
	}
}

func TestStudyProgressCountsEarlierRecords(t *testing.T) {
	var out bytes.Buffer
	p := newStudyProgress(&out, run.Study{Plan: plan.Plan{Arms: []string{"eevdf"}, Steps: []int{0, 1}}, Seeds: []int64{1, 2}})
	p.update(1, run.Progress{Done: 2, Total: 2})
	p.update(2, run.Progress{Done: 1, Total: 2, Window: &plan.Window{}})
	p.update(2, run.Progress{Done: 2, Total: 2, Window: &plan.Window{}})
	want := "  0:00  1 of 2 seeds · 2 of 4 windows\n  0:00  2 of 2 seeds · 4 of 4 windows\n"
	if out.String() != want {
		t.Errorf("got %q\nwant %q", out.String(), want)
	}
}
