//go:build lab

package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"temper.dev/temper/internal/evidence/bench"
)

// The client runs to warm up, then in two windows; in the third it fails.
const ownClient = `name: own
services:
  - name: server
    command: [./server, /etc/page]
    environment: {LAST_REQUEST: 1000000}
    files: {/etc/page: {text: hello}}
    ready: 8080
client:
  command: [./client, "http://{address}:{port}/page", "{seconds}", "3"]
  environment: {RATE: "{rate}"}
rate: 100
arms: [eevdf]
steps: [0, 1, 2]
seconds: 0.5
warmUp: 1
`

func TestAClientOfOnesOwn(t *testing.T) {
	dir := t.TempDir()
	build(t, dir, "server")
	build(t, dir, "client")
	if err := os.WriteFile(filepath.Join(dir, "own.yaml"), []byte(ownClient), 0o644); err != nil {
		t.Fatal(err)
	}
	run(t, dir, lab(t), "bench", "run", "own.yaml")
	record, err := bench.ReadRecord(filepath.Join(dir, "own-records", "own-2cpu-seed1.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range record.Arms[0].Steps[:2] {
		at := fmt.Sprintf("at %d", step.Background)
		if !step.Valid || step.Requests != 50 || step.P50 <= 0.1 || step.P50 > 100 {
			t.Errorf("%s: valid %v (%s), %d requests, want 50; p50 %g ms, want a latency of HTTP", at, step.Valid, step.InvalidReason, step.Requests, step.P50)
		}
		// It is a core or less: what is scaled to the window is the work, not the cores.
		if busy := step.BackgroundCores > 0.5; busy != (step.Background > 0) || (step.BackgroundWork > 0) != busy || step.ServiceCores <= 0 {
			t.Errorf("%s: background %g cores and %d units, service %g cores", at, step.BackgroundCores, step.BackgroundWork, step.ServiceCores)
		}
	}
	if last, want := record.Arms[0].Steps[2], "the client failed (exit status 4); it said: no more"; last.Valid || last.InvalidReason != want {
		t.Errorf("the last window: valid %v, %q, want %q", last.Valid, last.InvalidReason, want)
	}
}
