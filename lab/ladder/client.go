package ladder

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"temper.dev/temper/lab/plan"
)

// mostClient is how much longer than what it offers a client that is a command may take, in guest time.
const mostClient = 60 * time.Second

// runClientCommand has a user's own client offer a rate for some seconds, leaves what it measured in l.latencyFile(), and
// returns the figures that load generators print.
func (l *ladder) runClientCommand(ctx context.Context, c plan.CommandClient, rate, seconds float64, seed int64) (map[string]float64, error) {
	most := time.Duration(seconds*float64(time.Second)) + mostClient
	limited, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	cmd, err := l.clientCommand(limited, c, rate, seconds, seed)
	if err != nil {
		return nil, err
	}
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, io.MultiWriter(l.Log, &said)
	before, err := l.sampleBeside()
	if err != nil {
		return nil, err
	}
	err = cmd.Run()
	after, sampleErr := l.sampleBeside()
	switch failed, isFailed := errors.AsType[*exec.ExitError](err); {
	case sampleErr != nil:
		return nil, sampleErr
	case limited.Err() != nil && ctx.Err() == nil:
		return nil, fmt.Errorf("the client had not ended %s after it was to, and was killed; let it end after %s%s", mostClient, plan.SecondsWord, lastLines(said.String()))
	case isFailed:
		return nil, fmt.Errorf("the client failed (%s)%s", failed, lastLines(said.String()))
	case err != nil:
		return nil, err
	}
	p, err := readPrinted(out.Bytes(), c.Unit)
	if err != nil {
		return nil, err
	}
	if flaw := p.flaw(rate, seconds); flaw != "" {
		return nil, errors.New(flaw + lastLines(said.String()))
	}
	return before.figures(after, seconds), l.writeLatencies(p)
}

// clientCommand is the client on the CPUs of load generators, told what to offer.
func (l *ladder) clientCommand(ctx context.Context, c plan.CommandClient, rate, seconds float64, seed int64) (*exec.Cmd, error) {
	number := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	fill := strings.NewReplacer(plan.AddressWord, "127.0.0.1", plan.PortWord, strconv.Itoa(c.Port), plan.RateWord, number(rate),
		plan.SecondsWord, number(seconds), plan.SeedWord, strconv.FormatInt(seed, 10))
	args := []any{"-c", fmt.Sprintf("%d-%d", l.CPUs, l.CPUs+plan.GeneratorCPUs(l.CPUs)-1)}
	for _, word := range c.Command {
		args = append(args, fill.Replace(word))
	}
	cmd, err := l.command(ctx, "taskset", args...)
	if err != nil {
		return nil, err
	}
	for _, setting := range c.Environment {
		cmd.Env = append(cmd.Env, fill.Replace(setting))
	}
	cmd.Dir = filepath.Join(plan.ServicesFolder, plan.ClientName)
	cmd.WaitDelay = time.Second // what it has started may keep its output open
	return cmd, nil
}

// beside is what ran beside a client, up to a moment.
type beside struct {
	at                  time.Time
	work                uint64
	background, service time.Duration
}

func (l *ladder) sampleBeside() (b beside, err error) {
	b.at = time.Now()
	if b.work, err = l.workDone(); err != nil {
		return b, err
	}
	if b.background, err = l.used("background"); err != nil {
		return b, err
	}
	b.service, err = l.used("critical")
	return b, err
}

// figures are those that load generators print. Work is scaled to the window's length: this client starts and ends within
// the time that is looked at, which differs a little from run to run.
func (b beside) figures(after beside, seconds float64) map[string]float64 {
	elapsed := after.at.Sub(b.at)
	return map[string]float64{
		"elapsed_ns":      float64(elapsed),
		"work":            float64(after.work-b.work) * seconds / elapsed.Seconds(),
		"background_usec": float64((after.background - b.background).Microseconds()),
		"service_usec":    float64((after.service - b.service).Microseconds()),
	}
}

// slotSize is that of a worker's counter in the work file (the load folder's load.h).
const slotSize = 64

// workDone is the sum of what background workers have counted.
func (l *ladder) workDone() (sum uint64, err error) {
	text, err := os.ReadFile(filepath.Join(l.Dir, "work"))
	if errors.Is(err, os.ErrNotExist) { // there was no worker yet
		return 0, nil
	}
	for ; len(text) >= slotSize; text = text[slotSize:] {
		sum += binary.LittleEndian.Uint64(text)
	}
	return sum, err
}

// writeLatencies leaves latencies as load generators do: 0 is a request that was not answered.
func (l *ladder) writeLatencies(p printed) error {
	var file []byte
	for _, bar := range p.latencies.Distribution() {
		for range bar.Count {
			file = binary.LittleEndian.AppendUint64(file, uint64(bar.From+bar.To)/2)
		}
	}
	for range p.Sent - p.Answered {
		file = binary.LittleEndian.AppendUint64(file, 0)
	}
	return os.WriteFile(l.latencyFile(), file, 0o600)
}
