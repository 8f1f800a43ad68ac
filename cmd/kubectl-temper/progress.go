package main

import (
	"context"
	"io"
	"sync"
	"time"

	"temper.dev/temper/internal/base/live"
)

// progress is shown on standard error. On a terminal it is drawn anew each second, so that the time that is left goes down.
type progress struct {
	mu   sync.Mutex
	line live.Line
	text func() string
}

func newProgress(w io.Writer) *progress { return &progress{line: live.NewLine(w)} }

// say shows a text from now on.
func (p *progress) say(text func() string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text = text
	p.line.Show(text())
}

// keep draws the text anew, on a terminal, until ctx ends.
func (p *progress) keep(ctx context.Context) {
	if !p.line.Terminal {
		return
	}
	ticks := time.NewTicker(time.Second)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			p.again()
		}
	}
}

func (p *progress) again() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.text != nil {
		p.line.Show(p.text())
	}
}

func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text = nil
	p.line.End()
}
