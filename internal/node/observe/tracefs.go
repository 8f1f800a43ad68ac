package observe

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/host"
)

// Recorder records the scheduler's events in a trace buffer of its own, beside those of others.
type Recorder struct {
	dir string
}

// events are all that it takes: where a task waits, and that it has moved or is about to exit, does
// not change who runs and who could.
var events = []string{"sched_switch", "sched_wakeup", "sched_wakeup_new"}

// NewRecorder makes a trace buffer of so many KiB a CPU. Close removes it.
func NewRecorder(root host.Root, bufferKB int) (*Recorder, error) {
	instances := root.Path("/sys/kernel/tracing/instances")
	if !host.Exists(instances) {
		return nil, exit.New(exit.Failed, "as root: mount -t tracefs tracefs /sys/kernel/tracing", "tracefs is not mounted at /sys/kernel/tracing")
	}
	r := &Recorder{filepath.Join(instances, fmt.Sprintf("temper-%d", os.Getpid()))}
	if err := os.Mkdir(r.dir, 0o700); err != nil {
		return nil, err
	}
	settings := []struct{ file, value string }{
		{"tracing_on", "0"},
		// In this clock the events of all CPUs have one order.
		{"trace_clock", "global"},
		{"buffer_size_kb", strconv.Itoa(bufferKB)},
		// What does not fit shows as an overrun, not as a gap at the start.
		{"options/overwrite", "0"},
	}
	for _, e := range events {
		settings = append(settings, struct{ file, value string }{"events/sched/" + e + "/enable", "1"})
	}
	for _, s := range settings {
		if err := r.write(s.file, s.value); err != nil {
			return nil, errors.Join(err, r.Close())
		}
	}
	return r, nil
}

func (r *Recorder) write(file, value string) error {
	return os.WriteFile(filepath.Join(r.dir, file), []byte(value), 0)
}

// Start begins to record.
func (r *Recorder) Start() error { return r.write("tracing_on", "1") }

// Stop ends the recording.
func (r *Recorder) Stop() error { return r.write("tracing_on", "0") }

// Close removes the buffer.
func (r *Recorder) Close() error { return os.Remove(r.dir) }

// Trace returns what was recorded, once it has ended. Events that the buffer had no room for are an error:
// a trace with holes proves nothing.
func (r *Recorder) Trace() (Trace, error) {
	if err := r.checkComplete(); err != nil {
		return Trace{}, err
	}
	f, err := os.Open(filepath.Join(r.dir, "trace"))
	if err != nil {
		return Trace{}, err
	}
	defer f.Close()
	var t Trace
	for lines := bufio.NewScanner(f); lines.Scan(); {
		e, isEvent, err := parseLine(lines.Text())
		if err != nil {
			return Trace{}, err
		}
		if isEvent {
			t.Events = append(t.Events, e)
		}
	}
	if len(t.Events) == 0 {
		return Trace{}, fmt.Errorf("%s holds no events", f.Name())
	}
	t.Start, t.End = t.Events[0].At, t.Events[len(t.Events)-1].At
	return t, nil
}

// checkComplete reads the buffer's own count of what it lost.
func (r *Recorder) checkComplete() error {
	stats, err := filepath.Glob(filepath.Join(r.dir, "per_cpu/cpu*/stats"))
	if err != nil || len(stats) == 0 {
		return fmt.Errorf("%s has no statistics: %w", r.dir, fs.ErrNotExist)
	}
	for _, file := range stats {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(text)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			if (name == "overrun" || name == "commit overrun" || name == "dropped events") && value != "0" {
				return exit.New(exit.Failed, "record for a shorter time, or with a larger buffer", "the trace has holes: %s says %s %s", file, name, value)
			}
		}
	}
	return nil
}
