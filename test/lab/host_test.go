//go:build lab

package lab

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"temper.dev/temper/internal/evidence/bench"
	"temper.dev/temper/lab/cache"
)

const onAHost = `name: mine
services:
  - name: server
    command: [./server, /etc/page]
    environment: {LAST_REQUEST: 1000000}
    files: {/etc/page: {text: hello}}
    ready: 8080
client:
  http: {url: "http://localhost:8080/page", connections: 4}
rate: 100
arms: [eevdf, temper]
steps: [0, 1]
seconds: 0.5
warmUp: 1
`

// measureAndLook measures in the guest as on a host, and says what is left. The guest has a server on that port itself.
const measureAndLook = `
nc -l -p 8080 -e true &
own=$!
mount --make-rshared / # as systemd has it
mount >/before
temper-lab bench run /w/mine.yaml --on host --assets /assets --out /out >/said 2>&1 &
measuring=$!
if [ "$INTERRUPT" ]; then
	until grep -q ' 1 of 4 windows' /said; do sleep 0.1; done
	kill -INT $measuring
fi
wait $measuring
echo "status $?"
mount | cmp - /before && echo "mounts as before"
kill $own && echo "the port is as before"
ls -d /run/temper* /sys/fs/cgroup/temper* 2>/dev/null
echo "scheduler $(cat /sys/kernel/sched_ext/state)"
tail -n 3 /said
echo record
cat /out/* 2>/dev/null || true
`

// A guest is a host, too: it has a kernel with sched_ext, and root.
func TestOnAHost(t *testing.T) {
	root, dir := root(t), t.TempDir()
	build(t, dir, "server")
	if err := os.WriteFile(filepath.Join(dir, "mine.yaml"), []byte(onAHost), 0o644); err != nil {
		t.Fatal(err)
	}
	cached, err := cache.Default()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, interrupt, status string
		recorded                bool
	}{
		{"to the end", "", "status 0", true},
		{"interrupted", "yes", "status 130", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out, _ := run(t, root, lab(t), "exec", "--deterministic", "--timeout", "900s", "--env", "TEMPER_CACHE=/cache", "--env", "INTERRUPT="+c.interrupt,
				"--file", "/w="+dir, "--file", "/assets/build/guest=build/guest", "--file", "/assets/bin/scx_temper=bin/scx_temper",
				"--file", "/cache/userland/bookworm="+cached.Path("userland", "bookworm"), "--", "sh", "-c", measureAndLook)
			told, record, _ := strings.Cut(out, "record\n")
			for _, want := range []string{c.status, "mounts as before", "the port is as before", "scheduler disabled"} {
				if !strings.Contains(told, want) {
					t.Errorf("it does not say %q", want)
				}
			}
			if strings.Contains(told, "/run/temper") || strings.Contains(told, "/sys/fs/cgroup/temper") {
				t.Error("something is left")
			}
			if c.recorded {
				checkHostRecord(t, record)
			} else if strings.Contains(record, "{") {
				t.Error("there is a record")
			}
			if t.Failed() {
				t.Log(out)
			}
		})
	}
}

func checkHostRecord(t *testing.T, text string) {
	t.Helper()
	var record bench.Record
	if err := json.Unmarshal([]byte(text), &record); err != nil {
		t.Fatalf("%v: %.200s ... %s", err, text, text[max(0, len(text)-200):])
	}
	if record.Machine.Kind != "native" || record.RateRPS != 100 || len(record.Arms) != 2 {
		t.Errorf("machine %q, rate %g, %d arms; want native, 100, 2", record.Machine.Kind, record.RateRPS, len(record.Arms))
	}
	for _, arm := range record.Arms {
		for _, step := range arm.Steps {
			if !step.Valid || step.Requests < 20 || step.ServiceCores <= 0 || (step.BackgroundWork > 0) != (step.Background > 0) {
				t.Errorf("%s at %d: valid %v (%s), %d requests, service cores %g, work %v", arm.Arm, step.Background, step.Valid, step.InvalidReason,
					step.Requests, step.ServiceCores, step.BackgroundWork)
			}
		}
	}
}
