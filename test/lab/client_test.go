//go:build lab

package lab

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"temper.dev/temper/internal/evidence/bench"
)

// The client runs to warm up, then in four windows; in the fifth it fails. Each background worker starts a spinner that
// goes on, beside work in small runs, and the second worker fails.
const ownPrograms = `name: own
services:
  - name: server
    command: [./server, /etc/page]
    environment: {LAST_REQUEST: 1000000}
    files: {/etc/page: {text: hello}}
    ready: 8080
client:
  command: [./client, "http://{address}:{port}/page", "{seconds}", "5"]
  environment: {RATE: "{rate}"}
background:
  command:
    - sh
    - -c
    - |
      [ -e $PPID ] || { : >$PPID; while :; do :; done >/dev/null 2>&1 & }
      i=0; while [ $i -lt 100 ]; do i=$((i + 1)); done
      [ {worker} = 0 ] || { echo not me; exit 5; }
rate: 100
arms: [eevdf]
steps: [0, 1, 2, 0, 0]
seconds: 0.5
warmUp: 1
`

func TestClientAndBackgroundOfOnesOwn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	build(t, dir, "server")
	build(t, dir, "client")
	if err := os.WriteFile(filepath.Join(dir, "own.yaml"), []byte(ownPrograms), 0o644); err != nil {
		t.Fatal(err)
	}
	run(t, dir, lab(t), "bench", "run", "own.yaml")
	record, err := bench.ReadRecord(filepath.Join(dir, "own-records", "own-2cpu-seed1.json"))
	if err != nil {
		t.Fatal(err)
	}
	steps := record.Arms[0].Steps
	for i, wantCores := range map[int]float64{0: 0, 1: 1.5, 3: 0} { // what workers have started is ended with them
		step := steps[i]
		at := fmt.Sprintf("window %d, at %d", i, step.Background)
		if !step.Valid || step.Requests != 50 || step.P50 <= 0.1 || step.P50 > 100 || step.ServiceCores <= 0 {
			t.Errorf("%s: valid %v (%s), %d requests, want 50; p50 %g ms, want a latency of HTTP; service %g cores",
				at, step.Valid, step.InvalidReason, step.Requests, step.P50, step.ServiceCores)
		}
		if math.Abs(step.BackgroundCores-wantCores) > 0.5 || (step.BackgroundWork > 0) != (wantCores > 0) {
			t.Errorf("%s: background %g cores, want about %g; %d runs", at, step.BackgroundCores, wantCores, step.BackgroundWork)
		}
	}
	for i, want := range map[int]string{
		2: "background worker 1 has ended; it said: exit status 5 (not me)",
		4: "the client failed (exit status 4); it said: no more",
	} {
		if steps[i].Valid || steps[i].InvalidReason != want {
			t.Errorf("window %d: valid %v, %q, want %q", i, steps[i].Valid, steps[i].InvalidReason, want)
		}
	}
	if record.Spinner.Unit != "runs" || !strings.HasPrefix(record.Spinner.Command, "/srv/background/sh -c ") {
		t.Errorf("spinner %+v, want runs of sh", record.Spinner)
	}
}
