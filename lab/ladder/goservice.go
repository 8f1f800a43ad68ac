package ladder

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
)

// goService is a service written in Go whose collector comes in bursts (the guest folder's goservice).
type goService struct{}

func (goService) socket(l *ladder) string { return l.Dir + "/goservice" }

func (s goService) start(ctx context.Context, l *ladder) error {
	return l.startSpeaker(ctx, "goservice", "serve", s.socket(l), l.CPUs)
}

func (s goService) ask(ctx context.Context, l *ladder, a asked) (answers, error) {
	return l.askBySocket(ctx, s.socket(l), a)
}

// startSpeaker starts a service in the critical cgroup, on the application CPUs, and waits until it says by a byte that it
// listens.
func (l *ladder) startSpeaker(ctx context.Context, program string, args ...any) error {
	server, err := l.serviceCommand(ctx, program, args...)
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
	if _, err := listens.Read(make([]byte, 1)); err != nil {
		return fmt.Errorf("%s ended before it listened: %w", program, err)
	}
	return nil
}

// askBySocket asks a service that answers bytes.
func (l *ladder) askBySocket(ctx context.Context, socket string, a asked) (answers, error) {
	cmd, err := l.command(ctx, "goservice", "load", socket, a.rate, a.clients, a.warmUp, a.seconds, a.seed, l.latencyFile())
	if err != nil {
		return answers{}, err
	}
	if _, err := figuresOf(cmd, "goservice"); err != nil {
		return answers{}, err
	}
	raw, err := os.ReadFile(l.latencyFile())
	if err != nil {
		return answers{}, err
	}
	h := newLatencies()
	for ; len(raw) >= 8; raw = raw[8:] {
		if err := h.RecordValue(int64(binary.LittleEndian.Uint64(raw))); err != nil {
			return answers{}, err
		}
	}
	return answers{Histogram: h}, nil
}
