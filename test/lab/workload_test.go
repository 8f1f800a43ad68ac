//go:build lab

// Package lab runs bin/temper-lab on the deterministic machine.
package lab

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"temper.dev/temper/internal/evidence/bench"
)

// The server ends in the second window of the arm that comes first: 100 requests of warm-up, 80 a window. scx_temper is
// what fails starts, and the real one is at its side.
const workload = `name: mine
services:
  - name: server
    command: [./server, /etc/page]
    environment: {LAST_REQUEST: 220}
    files: {/etc/page: {text: hello}, /opt/scx_temper: scx_temper}
    ready: 8080
client:
  http: {url: "http://mine:8080/page", connections: 4}
rate: 100
arms: [eevdf, temper, temper-full]
steps: [0, 1]
seconds: 0.5
warmUp: 1
`

// fails is a scx_temper that does not load the second time.
const fails = `#!/bin/sh
if [ -e /run/attached ]; then
	echo '{"event": "error", "message": "the verifier refuses it", "status": 8}'
	exit 8
fi
touch /run/attached
exec /opt/scx_temper "$@"
`

func root(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// lab is the program that is tested.
func lab(t *testing.T) string { return filepath.Join(root(t), "bin/temper-lab") }

// run runs a program in a folder.
func run(t *testing.T, dir, name string, args ...string) (stdout, stderr string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s%s", name, err, out.String(), errs.String())
	}
	return out.String(), errs.String()
}

// build builds a program of this folder into another, linked to the C library, so that it starts only where its libraries
// have come with it.
func build(t *testing.T, dir, name string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-linkmode=external", "-o", filepath.Join(dir, name), "./"+name)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func TestAProgramOfOnesOwn(t *testing.T) {
	root, dir := root(t), t.TempDir()
	build(t, dir, "server")
	if err := os.WriteFile(filepath.Join(dir, "mine.yaml"), []byte(workload), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "assets/bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "assets/bin/scx_temper"), []byte(fails), 0o755); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"assets/build": "build", "scx_temper": "bin/scx_temper"} {
		if err := os.Symlink(filepath.Join(root, target), filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	out, _ := run(t, dir, lab(t), "bench", "run", "mine.yaml", "--assets", "assets")
	path := filepath.Join(dir, "mine-records", "mine-2cpu-seed1.json")
	record, err := bench.ReadRecord(path)
	if err != nil {
		t.Fatal(err)
	}
	if record.Scenario != "mine" || record.RateRPS != 100 || len(record.Arms) != 3 {
		t.Errorf("scenario %s, rate %g, %d arms", record.Scenario, record.RateRPS, len(record.Arms))
	}
	attached := 0
	for i, arm := range record.Arms {
		if arm.Arm != "eevdf" {
			attached++
		}
		for j, step := range arm.Steps {
			at := fmt.Sprintf("%s at %d", arm.Arm, step.Background)
			want := ""
			switch {
			case i == 0 && j == 1:
				want = "service server has ended (exit status 3); it said: that was the last one"
			case attached == 2 && arm.Arm != "eevdf":
				want = "the arm could not be entered: scx_temper: the verifier refuses it"
			}
			if want != "" {
				if step.Valid || step.InvalidReason != want {
					t.Errorf("%s: valid %v, %q, want %q", at, step.Valid, step.InvalidReason, want)
				}
				continue
			}
			if !step.Valid || step.Requests < 20 || step.P50 <= 0 || step.ServiceCores <= 0 {
				t.Errorf("%s: valid %v (%s), %d requests, p50 %g ms, %g cores", at, step.Valid, step.InvalidReason, step.Requests, step.P50, step.ServiceCores)
			}
			if scheduler := map[string]string{"eevdf": "", "temper": "temper", "temper-full": "temper"}[arm.Arm]; step.Scheduler != scheduler {
				t.Errorf("%s: scheduler %q", at, step.Scheduler)
			}
		}
	}
	for _, want := range []string{"mine, 2 CPUs", "temper (lazy)", "temper-full (full)", "invalid window: service server has ended", "Records are in mine-records"} {
		if !strings.Contains(out, want) {
			t.Errorf("the report does not say %q:\n%s", want, out)
		}
	}
	// Again, it measures nothing: what is recorded stays as it is.
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	again, told := run(t, dir, lab(t), "bench", "run", "mine.yaml", "--assets", "assets")
	after, err := os.Stat(path)
	if err != nil || !after.ModTime().Equal(before.ModTime()) || again != out || !strings.Contains(told, "recorded earlier") {
		t.Errorf("run again: %v, said %s, told %s", err, again, told)
	}
}
