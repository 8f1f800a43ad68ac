package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/fixture"
	"temper.dev/temper/internal/evidence/demo"
	"temper.dev/temper/lab/assets"
	"temper.dev/temper/lab/plan"
	"temper.dev/temper/lab/run"
)

// fakeLab makes a cache, a build and an emulator, all of them empty: the emulator says that its guest
// is ready, and then nothing, with a child of its own, until it is killed.
func fakeLab(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	elf, err := os.ReadFile("/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	kernel := "cache/kernels/6.18.1+deb13-cloud-amd64/"
	files := map[string]string{
		kernel + "vmlinuz": "kernel", kernel + "vmlinux-steady": "kernel",
		"cache/userland/bookworm/bin/busybox":       "#!/bin/sh\necho sh\n",
		"cache/userland/bookworm/usr/bin/memcached": string(elf),
		"assets/bin/scx_temper":                     "loader",
		"assets/build/temper.bpf.o":                 "object",
		"assets/build/guest/init":                   "init",
		"path/qemu-system-x86_64": `#!/bin/sh
[ "$1" != --version ] || { echo "QEMU emulator version 10.0.2"; exit; }
sleep infinity &
echo $! >` + dir + `/child.$$
echo '{"kind":"ready","ready":{"kernel":"6.18.1"}}' >data.jsonl
wait
`,
	}
	for _, p := range assets.GuestPrograms {
		files["assets/build/guest/"+p] = p
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("TEMPER_CACHE", filepath.Join(dir, "cache"))
	t.Setenv("PATH", filepath.Join(dir, "path")+":"+os.Getenv("PATH"))
	return dir
}

// signalWriter calls told once both ladders measure.
type signalWriter struct {
	mu   sync.Mutex
	text bytes.Buffer
	told func()
}

func (w *signalWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text.Write(p)
	if bytes.Contains(p, []byte("chain measuring · memcached measuring")) {
		w.told()
	}
	return len(p), nil
}

func TestInterruptedDemoLeavesNothing(t *testing.T) {
	dir := fakeLab(t)
	ctx, interrupt := context.WithTimeout(t.Context(), time.Minute)
	defer interrupt()
	progress := &signalWriter{told: interrupt}
	out := filepath.Join(dir, "out")
	root := newRootCommand()
	root.SetArgs([]string{"demo", "--out", out, "--assets", filepath.Join(dir, "assets")})
	root.SetOut(new(bytes.Buffer))
	root.SetErr(progress)
	err := root.ExecuteContext(ctx)
	if exit.StatusOf(err) != exit.Interrupted || strings.Contains(err.Error(), "\n") {
		t.Fatalf("got %v after\n%s", err, progress.text.String())
	}
	if _, err := os.Stat(out); !os.IsNotExist(err) {
		t.Errorf("%s is there: %v", out, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "cache/runs/*")); len(left) > 0 {
		t.Errorf("files of guests are left: %v", left)
	}
	guests, _ := filepath.Glob(filepath.Join(dir, "child.*"))
	if len(guests) != 2 {
		t.Errorf("%d guests were started, not 2", len(guests))
	}
	for _, g := range guests {
		fixture.AwaitEnd(t, g)
	}
}

func TestDemoUsageErrors(t *testing.T) {
	for _, args := range []string{"demo extra", "demo --scale 0", "demo --cpus 24", "demo --out /dev/null/x"} {
		root := newRootCommand()
		root.SetArgs(strings.Fields(args))
		root.SetOut(new(bytes.Buffer))
		root.SetErr(new(bytes.Buffer))
		if err := root.ExecuteContext(t.Context()); exit.StatusOf(err) != exit.Usage {
			t.Errorf("temper %s: got status %d, %v", args, exit.StatusOf(err), err)
		}
	}
}

func TestDemoProgress(t *testing.T) {
	var out bytes.Buffer
	p := newDemoProgress(&out, demo.Plans(2, 1, 1))
	w := &plan.Window{Arm: "temper"}
	w.Step.P50, w.Step.P99, w.Step.Valid = 5, 8, true
	p.update(demo.Progress{Ladders: []run.Progress{{Stage: "measuring", Done: 1, Total: 15, Left: time.Minute, Window: w}, {}}})
	want := "  0:00  chain 1 of 15 windows · memcached waits · about 1:00 left · chain, temper, 0 in the background: p50 5 ms, p99 8 ms\n"
	// The time left of a ladder that waits is that of the current one.
	want = strings.Replace(want, "1:00", "2:00", 1)
	if out.String() != want {
		t.Errorf("got  %q\nwant %q", out.String(), want)
	}
}
