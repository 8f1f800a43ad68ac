//go:build guest

package guest

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/node/enforce"
)

// storesOf are the ids of all maps in which the kernel keeps something for each task, of a scheduler of ours.
func storesOf(t *testing.T) (ids []ebpf.MapID) {
	t.Helper()
	for id := ebpf.MapID(0); ; {
		next, err := ebpf.MapGetNextID(id)
		if err != nil {
			return ids
		}
		id = next
		m, err := ebpf.NewMapFromID(id)
		if err != nil {
			continue // it has gone meanwhile
		}
		if info, err := m.Info(); err == nil && info.Name == "task_states" {
			ids = append(ids, id)
		}
		m.Close()
	}
}

// awaitNoStore waits until the kernel has freed what earlier schedulers left. A CPU that goes before that can stop the kernel for good.
func awaitNoStore(t *testing.T) {
	t.Helper()
	const calm = 20 // times in a row: between a map's last use and the worker that frees it some milliseconds pass
	seen := 0
	eventually(t, "the kernel has freed the maps of earlier schedulers", func() bool {
		seen++
		if len(storesOf(t)) > 0 || isFreeingMaps(t) {
			seen = 0
		}
		return seen >= calm
	})
}

func isFreeingMaps(t *testing.T) bool {
	t.Helper()
	stacks, err := filepath.Glob("/proc/[0-9]*/stack")
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(stacks, func(file string) bool {
		stack, err := os.ReadFile(file)
		return err == nil && strings.Contains(string(stack), "bpf_map_free")
	})
}

func setOnline(t *testing.T, cpu string, online string) {
	t.Helper()
	if err := os.WriteFile("/sys/devices/system/cpu/cpu"+cpu+"/online", []byte(online), 0); err != nil {
		t.Fatal(err)
	}
}

// TestCPUsThatComeAndGo: the scheduler comes back each time, and nothing that the kernel might stop over is freed between.
func TestCPUsThatComeAndGo(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Fatal("this takes two CPUs")
	}
	awaitNoStore(t)
	sleeper := sleepingProcess(t)
	l := attach(t)
	before := storesOf(t)
	if len(before) != 1 {
		t.Fatalf("the scheduler's stores are %v, want one", before)
	}
	same := func(when string) {
		t.Helper()
		if s := kernel(t); !s.IsTemper() {
			t.Fatalf("%s the kernel says %+v", when, s)
		}
		if now := storesOf(t); !slices.Equal(now, before) {
			t.Errorf("%s the stores are %v, want %v", when, now, before)
		}
	}
	sleeper.wakeUp()
	eventually(t, "the scheduler has seen it wait for a CPU", func() bool { return sleeper.lastWait(t) != 0 })
	t.Cleanup(func() { setOnline(t, "1", "1") })
	for _, online := range []string{"0", "1"} {
		setOnline(t, "1", online)
		for _, want := range []string{enforce.EventExited, enforce.EventAttached} {
			if e := l.next(t); e.Event != want {
				t.Fatalf("with CPU 1 at %s: %+v, want %s", online, e, want)
			}
		}
		same("with CPU 1 at " + online)
	}
	if since := sleeper.lastWait(t); since != 0 {
		t.Errorf("what the scheduler before knew of a task that has slept since is still there: runnable_at is %d, want 0", since)
	}

	if status := l.leave(t, syscall.SIGUSR1); status != exit.OK {
		t.Fatalf("it left with %d", status)
	}
	attach(t, "--system-share", "30")
	same("after a change of options")
}

// sleeper is a process that does nothing but read what it is told.
type sleeper struct {
	pid   int
	stdin io.Writer
}

func sleepingProcess(t *testing.T) sleeper {
	t.Helper()
	pid, stdin, _ := cat(t)
	return sleeper{pid, stdin}
}

func (s sleeper) wakeUp() { fmt.Fprintln(s.stdin) }

// lastWait is the scheduler's note of when the process last began to wait for a CPU; 0: never.
func (s sleeper) lastWait(t *testing.T) uint64 {
	t.Helper()
	state, offset := taskState(t, s.pid)
	return binary.NativeEndian.Uint64(state[offset("runnable_at"):])
}

// taskState is what the scheduler knows of a process's first thread, and where its members are.
func taskState(t *testing.T, pid int) (state []byte, offset func(member string) uint32) {
	t.Helper()
	states, err := ebpf.LoadPinnedMap(root.Pins()+"/task_states", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer states.Close()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	state = make([]byte, states.ValueSize())
	if err := states.Lookup(int32(fd), state); err != nil {
		t.Fatal(err)
	}
	return state, offsetsIn(t, states, "task_state")
}
