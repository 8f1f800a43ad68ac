package machine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/lab/plan"
)

// follow reads the guest's events as they come, until one says that it is done or failed, or until
// ended is closed and all that was written is read.
func follow(path string, ended <-chan struct{}, handle func(plan.Event) error) (done bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	lines := lineReader{}
	for last := false; ; {
		chunk, err := io.ReadAll(f)
		if err != nil {
			return false, err
		}
		for _, line := range lines.add(chunk) {
			if done, err := handleLine(line, handle); done || err != nil {
				return done, err
			}
		}
		if last {
			return false, nil
		}
		select {
		case <-ended:
			last = true // once more, for what came between the read and the end
		case <-tick.C:
		}
	}
}

func handleLine(line []byte, handle func(plan.Event) error) (done bool, err error) {
	var e plan.Event
	if err := json.Unmarshal(line, &e); err != nil {
		return false, fmt.Errorf("the guest wrote %q, which is no event: %w", line, err)
	}
	if e.Kind == "error" {
		return false, exit.New(exit.Failed, "", "the guest failed: %s", e.Text)
	}
	return e.Kind == "done", handle(e)
}

// lineReader keeps the start of a line until its end has come.
type lineReader struct{ rest []byte }

func (r *lineReader) add(chunk []byte) [][]byte {
	parts := bytes.Split(append(r.rest, chunk...), []byte("\n"))
	r.rest = parts[len(parts)-1]
	return parts[:len(parts)-1]
}
