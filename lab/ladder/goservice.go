package ladder

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// goService is a service written in Go whose collector comes in bursts (the guest folder's goservice).
type goService struct{}

func (goService) socket(l *ladder) string { return l.Dir + "/goservice" }

func (s goService) start(ctx context.Context, l *ladder) error {
	server, err := l.command(ctx, "taskset", "-c", fmt.Sprintf("0-%d", l.CPUs-1), "goservice", "serve", s.socket(l), l.CPUs)
	if err != nil {
		return err
	}
	listens, err := server.StdoutPipe()
	if err != nil {
		return err
	}
	if err := l.startIn("critical", server); err != nil {
		return err
	}
	_, err = listens.Read(make([]byte, 1))
	return err
}

func (s goService) ask(ctx context.Context, l *ladder, a asked) (*hdrhistogram.Histogram, error) {
	cmd, err := l.command(ctx, "taskset", "-c", l.CPUs, "goservice", "load",
		s.socket(l), a.rate, a.clients, a.warmUp, a.seconds, a.seed, l.latencyFile())
	if err != nil {
		return nil, err
	}
	if _, err := figuresOf(cmd, "goservice"); err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(l.latencyFile())
	if err != nil {
		return nil, err
	}
	h := newLatencies()
	for ; len(raw) >= 8; raw = raw[8:] {
		if err := h.RecordValue(int64(binary.LittleEndian.Uint64(raw))); err != nil {
			return nil, err
		}
	}
	return h, nil
}
