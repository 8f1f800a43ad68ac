package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"temper.dev/temper/internal/base/live"
	"temper.dev/temper/lab/plan"
	"temper.dev/temper/lab/run"
)

// ladderProgress shows one ladder.
type ladderProgress struct{ live.Line }

func newLadderProgress(w io.Writer) *ladderProgress {
	return &ladderProgress{live.NewLine(w)}
}

func (l *ladderProgress) update(p run.Progress) { l.Show(describeProgress(p)) }

func describeProgress(p run.Progress) string {
	parts := []string{p.Stage}
	if p.Total > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d windows", p.Done, p.Total))
	}
	if p.Left > 0 {
		parts = append(parts, "about "+live.Clock(p.Left)+" left")
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
	live.Line
	mu       sync.Mutex
	seeds    map[int64]run.Progress
	earlier  int // windows that were recorded before this run
	total    int
	complete int
}

func newStudyProgress(w io.Writer, s run.Study) *studyProgress {
	windows := len(s.Plan.Arms) * len(s.Plan.Steps)
	return &studyProgress{Line: live.NewLine(w), seeds: map[int64]run.Progress{}, total: windows * len(s.Seeds)}
}

// update is called from several goroutines.
func (s *studyProgress) update(seed int64, p run.Progress) {
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
	if ended || s.Terminal {
		s.Show(s.describe())
	}
}

func (s *studyProgress) describe() string {
	done := 0
	for _, p := range s.seeds {
		done += p.Done
	}
	text := fmt.Sprintf("%d of %d seeds · %d of %d windows", s.complete, s.total/s.perSeed(), done, s.total)
	if now := done - s.earlier; now > 0 && done < s.total {
		left := time.Since(s.Start()) * time.Duration(s.total-done) / time.Duration(now)
		text += " · about " + live.Clock(left) + " left"
	}
	return text
}

func (s *studyProgress) perSeed() int {
	for _, p := range s.seeds {
		return p.Total
	}
	return 1
}
