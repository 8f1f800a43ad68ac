package ladder

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"

	"temper.dev/temper/internal/evidence/bench"
	"temper.dev/temper/lab/plan"
)

// settle is the load, in guest seconds, that each window's generator sends before it measures.
const settle = 0.3

func (l *ladder) runWindow(ctx context.Context, arm plan.Arm, background int) (*plan.Window, error) {
	workers, stop, err := l.startBackground(ctx, l.service.background(), background, l.CPUs)
	if err != nil {
		return nil, err
	}
	defer stop()
	before, err := readAttachment()
	if err != nil {
		return nil, err
	}
	// The same arrivals at every step of every arm: what differs is what runs beside them.
	observed := l.observe(ctx)
	figures, err := l.service.load(ctx, l, settle, l.Seconds, l.Seed*1000)
	seen, observeErr := observed()
	if none, ok := errors.AsType[*lost](err); ok {
		w := &plan.Window{Arm: arm.Name, Preempt: arm.Preempt}
		w.Step.Background, w.Step.Scheduler, w.Step.InvalidReason = background, before.ops, none.reason
		return w, nil
	}
	if err := errors.Join(err, observeErr); err != nil {
		return nil, err
	}
	after, err := readAttachment()
	if err != nil {
		return nil, err
	}
	step, err := l.measure(figures)
	if err != nil {
		return nil, err
	}
	step.Background = background
	step.Scheduler = after.ops
	step.InvalidReason = invalidReason(arm, before, after, step)
	if step.InvalidReason == "" {
		step.InvalidReason, err = l.endedReason(workers)
	}
	if err == nil && step.InvalidReason == "" {
		step.InvalidReason, err = policyReason(arm.BackgroundPolicy, workers)
	}
	step.Valid = step.InvalidReason == ""
	return &plan.Window{Arm: arm.Name, Preempt: arm.Preempt, Step: *step, Observed: seen}, err
}

func invalidReason(arm plan.Arm, before, after attachment, step *bench.Step) string {
	if reason := notThroughout(arm, before, after); reason != "" {
		return reason
	}
	switch {
	case step.Requests == 0:
		return "no request was answered"
	case step.Unanswered*100 > step.Requests:
		return fmt.Sprintf("%d requests of %d were not answered within half a second of the window's end", step.Unanswered, step.Requests+step.Unanswered)
	}
	return ""
}

// notThroughout says why the arm's scheduler was not attached from before to after; "": it was.
func notThroughout(arm plan.Arm, before, after attachment) string {
	switch {
	case before.ops != arm.Scheduler || after.ops != arm.Scheduler:
		return fmt.Sprintf("scheduler was %q at the start and %q at the end, not %q", before.ops, after.ops, arm.Scheduler)
	case before.seq != after.seq:
		return fmt.Sprintf("the scheduler was attached again meanwhile (enable_seq %s, then %s)", before.seq, after.seq)
	}
	return ""
}

// attachment is what /sys/kernel/sched_ext says of the scheduler.
type attachment struct{ ops, seq string }

const schedExt = "/sys/kernel/sched_ext/"

func readAttachment() (attachment, error) {
	seq, err := os.ReadFile(schedExt + "enable_seq")
	if err != nil {
		return attachment{}, err
	}
	a := attachment{seq: strings.TrimSpace(string(seq))}
	ops, err := os.ReadFile(schedExt + "root/ops")
	if err != nil && !os.IsNotExist(err) { // without a scheduler there is no root
		return attachment{}, err
	}
	a.ops, _, _ = strings.Cut(strings.TrimSpace(string(ops)), "_")
	return a, nil
}

// latencyFile is where a generator leaves its latencies.
func (l *ladder) latencyFile() string { return filepath.Join(l.Dir, "latency") }

// newLatencies is an empty histogram of latencies in ns.
func newLatencies() *hdrhistogram.Histogram { return hdrhistogram.New(1000, 60_000_000_000, 3) }

// measure turns a generator's figures and latencies into a step.
func (l *ladder) measure(figures map[string]float64) (*bench.Step, error) {
	raw, err := os.ReadFile(l.latencyFile())
	if err != nil {
		return nil, err
	}
	h := newLatencies()
	step := &bench.Step{}
	for ; len(raw) >= 8; raw = raw[8:] {
		ns := binary.LittleEndian.Uint64(raw)
		if ns == 0 {
			step.Unanswered++
			continue
		}
		if err := h.RecordValue(int64(ns)); err != nil {
			return nil, fmt.Errorf("latency of %d ns: %w", ns, err)
		}
	}
	ms := func(quantile float64) float64 { return float64(h.ValueAtQuantile(quantile)) / 1e6 }
	step.Requests = int(h.TotalCount())
	step.P50, step.P90, step.P99, step.P999 = ms(50), ms(90), ms(99), ms(99.9)
	step.Max, step.Mean = float64(h.Max())/1e6, h.Mean()/1e6
	encoded, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return nil, err
	}
	step.Histogram = string(encoded)
	usec := figures["elapsed_ns"] / 1000
	step.BackgroundWork = uint64(figures["work"])
	step.BackgroundCores = figures["background_usec"] / usec
	step.ServiceCores = figures["service_usec"] / usec
	step.IdleCores = max(0, float64(l.CPUs)-step.BackgroundCores-step.ServiceCores)
	return step, nil
}
