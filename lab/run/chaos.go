package run

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/lab/assets"
	"temper.dev/temper/lab/chaos"
	"temper.dev/temper/lab/machine"
	"temper.dev/temper/lab/plan"
)

// ChaosOptions say how to attack.
type ChaosOptions struct {
	Seeds      []int64
	Operations int           // a seed
	Soak       time.Duration // instead of operations: critical work on all CPUs for so long
	CPUs       int           // virtual ones
	Fast       bool          // on several host threads: more happens at once, and no seed happens twice
	Jobs       int           // guests at a time
	Consoles   string        // folder for what the kernels of seeds with violations said; "": none
}

// Check refuses what no machine can do.
func (o ChaosOptions) Check() error {
	if len(o.Seeds) == 0 || o.Jobs < 1 || o.Operations < 1 || o.CPUs < 2 {
		return exit.New(exit.Usage, "", "an attack takes a seed, a job, an operation and two CPUs at the least")
	}
	if o.Fast {
		return nil
	}
	_, err := machine.OfSize(o.CPUs)
	return err
}

// ChaosRecord is what such an attack is recorded in: no seed yet.
func (l *Lab) ChaosRecord(o ChaosOptions) chaos.Record {
	r := chaos.Record{Kernel: l.Kernel.Release, CPUs: o.CPUs, Fast: o.Fast, SoakSeconds: o.Soak.Seconds(), Hashes: l.Hashes, Seeds: []chaos.Report{}}
	if o.Soak == 0 {
		r.Operations = o.Operations
	}
	return r
}

// mostPerSecond bounds how many real seconds a guest second of an attack may take. A guest that is
// busier than that hangs.
const mostPerSecond = 20

// Chaos attacks one guest a seed, and hands each report to done, from several goroutines. A guest that
// hangs or breaks is a violation like others; what keeps guests from being started at all is an error.
func (l *Lab) Chaos(ctx context.Context, o ChaosOptions, done func(chaos.Report)) error {
	for _, program := range []string{assets.Chaos, assets.Churn} {
		if _, err := l.assets.File(program); err != nil {
			return err
		}
	}
	if o.Consoles != "" {
		if err := os.MkdirAll(o.Consoles, 0o755); err != nil {
			return err
		}
	}
	seeds := make(chan int64, len(o.Seeds))
	for _, seed := range o.Seeds {
		seeds <- seed
	}
	close(seeds)
	var workers sync.WaitGroup
	for range min(o.Jobs, len(o.Seeds)) {
		workers.Go(func() {
			for seed := range seeds {
				report := l.attack(ctx, o, seed)
				if ctx.Err() != nil {
					return
				}
				done(report)
			}
		})
	}
	workers.Wait()
	return ctx.Err()
}

// attack attacks one guest.
func (l *Lab) attack(ctx context.Context, o ChaosOptions, seed int64) chaos.Report {
	var out bytes.Buffer
	var lost int
	exec := ExecOptions{
		CPUs: o.CPUs, Output: &out,
		Argv: []string{"chaos", "-seed", fmt.Sprint(seed), "-operations", fmt.Sprint(o.Operations), fmt.Sprintf("-fast=%t", o.Fast), fmt.Sprint("-soak=", o.Soak)},
		Files: map[string]string{
			"/bin/chaos": string(l.assets) + "/" + assets.Chaos, "/bin/churn": string(l.assets) + "/" + assets.Churn,
		},
		Console:  o.console(seed),
		Again:    func(error) { out.Reset(); lost++ },
		Deadline: mostPerSecond * chaos.Config{Operations: o.Operations, Soak: o.Soak}.MostTime(),
	}
	if !o.Fast {
		exec.Quantum = plan.DefaultQuantum
	}
	status, err := l.Exec(ctx, exec)
	report := chaos.Report{Seed: seed}
	switch last := lastLine(out.Bytes()); {
	case err != nil:
		report.Violations = []string{err.Error()}
	case status != 0:
		report.Violations = []string{fmt.Sprintf("the attack ended with status %d: %s", status, last)}
	default:
		if err := json.Unmarshal(last, &report); err != nil {
			report.Violations = []string{fmt.Sprintf("the attack said %q, which is no report: %v", last, err)}
		}
	}
	report.LostGuests = lost
	if exec.Console != "" && len(report.Violations) == 0 {
		_ = os.Remove(exec.Console) // nobody has to read it
	}
	return report
}

func (o ChaosOptions) console(seed int64) string {
	if o.Consoles == "" {
		return ""
	}
	return filepath.Join(o.Consoles, fmt.Sprintf("seed%d.log", seed))
}

func lastLine(text []byte) []byte {
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return lines[len(lines)-1]
}
