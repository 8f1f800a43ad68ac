package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"temper.dev/temper/internal/base/cli"
	"temper.dev/temper/lab"
	"temper.dev/temper/lab/plan"
)

// progressLine shows how far something has come: on a terminal one line that changes, elsewhere
// plain lines, so that a log stays readable.
type progressLine struct {
	w        io.Writer
	terminal bool
	shown    bool
	start    time.Time
}

func newProgressLine(w io.Writer) progressLine {
	return progressLine{w: w, terminal: cli.IsTerminal(w), start: time.Now()}
}

func (p *progressLine) show(text string) {
	if !p.terminal {
		fmt.Fprintf(p.w, "%6s  %s\n", clock(time.Since(p.start)), text)
		return
	}
	if width, _, err := term.GetSize(int(p.w.(interface{ Fd() uintptr }).Fd())); err == nil && len(text) >= width && width > 0 {
		text = text[:width-1]
	}
	fmt.Fprint(p.w, "\r\x1b[K"+text)
	p.shown = true
}

// end leaves the terminal's line to what comes next.
func (p *progressLine) end() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}

// clock writes a duration as minutes and seconds.
func clock(d time.Duration) string {
	s := int(d.Round(time.Second).Seconds())
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// ladderProgress shows one ladder.
type ladderProgress struct{ progressLine }

func newLadderProgress(w io.Writer) *ladderProgress {
	return &ladderProgress{newProgressLine(w)}
}

func (l *ladderProgress) update(p lab.Progress) { l.show(describeProgress(p)) }

func describeProgress(p lab.Progress) string {
	parts := []string{p.Stage}
	if p.Total > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d windows", p.Done, p.Total))
	}
	if p.Left > 0 {
		parts = append(parts, "about "+clock(p.Left)+" left")
	}
	if w := p.Window; w != nil {
		parts = append(parts, fmt.Sprintf("%s, %d in the background: %s", w.Arm, w.Step.Background, describeLatency(w)))
	}
	return strings.Join(parts, " · ")
}

func describeLatency(w *plan.Window) string {
	text := fmt.Sprintf("p50 %.3g ms, p99 %.3g ms", w.Step.P50, w.Step.P99)
	if !w.Step.Valid {
		text += " (does not count: " + w.Step.InvalidReason + ")"
	}
	return text
}

// studyProgress shows the ladders of a study as one.
type studyProgress struct {
	progressLine
	mu       sync.Mutex
	seeds    map[int64]lab.Progress
	earlier  int // windows that were recorded before this run
	total    int
	complete int
}

func newStudyProgress(w io.Writer, s lab.Study) *studyProgress {
	windows := len(s.Plan.Arms) * len(s.Plan.Steps)
	return &studyProgress{progressLine: newProgressLine(w), seeds: map[int64]lab.Progress{}, total: windows * len(s.Seeds)}
}

// update is called from several goroutines.
func (s *studyProgress) update(seed int64, p lab.Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seeds[seed] = p
	ended := p.Done == p.Total
	if ended {
		s.complete++
	}
	if ended && p.Window == nil {
		s.earlier += p.Done
	}
	if ended || s.terminal {
		s.show(s.describe())
	}
}

func (s *studyProgress) describe() string {
	done := 0
	for _, p := range s.seeds {
		done += p.Done
	}
	text := fmt.Sprintf("%d of %d seeds · %d of %d windows", s.complete, s.total/s.perSeed(), done, s.total)
	if now := done - s.earlier; now > 0 && done < s.total {
		left := time.Since(s.start) * time.Duration(s.total-done) / time.Duration(now)
		text += " · about " + clock(left) + " left"
	}
	return text
}

func (s *studyProgress) perSeed() int {
	for _, p := range s.seeds {
		return p.Total
	}
	return 1
}
