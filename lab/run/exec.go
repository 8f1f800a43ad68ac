package run

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"time"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/lab/assets"
	"temper.dev/temper/lab/image"
	"temper.dev/temper/lab/kernels"
	"temper.dev/temper/lab/machine"
	"temper.dev/temper/lab/plan"
)

// ExecOptions is one command to run in a guest.
type ExecOptions struct {
	CPUs     int      // virtual CPUs
	Topology string   // as 1x2x2: sockets, cores of each, threads of each core, in place of CPUs; on the fast machine only
	Quantum  int      // with it the machine is the deterministic one, on which every virtual CPU has a turn in this time, in us
	Append   []string // words for the kernel's command line
	Argv     []string
	Env      []string          // added to the guest's own
	Files    map[string]string // path in the guest: file or folder on the host; what programs need comes with them
	Deadline time.Duration     // real time; the guest is stopped after it
	Output   io.Writer         // what the command prints, as it prints it
	Console  string            // file on the host for what the guest's kernel says; "": none
	// Again is told why the command is run again, in a new guest: what it has printed so far is void.
	// nil: it is not.
	Again func(why error)
}

// Exec gets a machine ready and runs one command on it.
func Exec(ctx context.Context, options Options, o ExecOptions) (status int, err error) {
	l, err := Open(ctx, options, []string{plan.Temper})
	if err != nil {
		return 0, err
	}
	return l.Exec(ctx, o)
}

// mostGuests is how many guests a command may need, since the emulator loses one at times.
const mostGuests = 4

// Exec boots the machine, runs a command in it, and returns the command's exit status.
func (l *Lab) Exec(ctx context.Context, o ExecOptions) (status int, err error) {
	for range mostGuests - 1 {
		if status, err = l.execOnce(ctx, o); !errors.Is(err, machine.ErrStaleCode) || o.Again == nil {
			return status, err
		}
		o.Again(err)
	}
	return l.execOnce(ctx, o)
}

func (l *Lab) execOnce(ctx context.Context, o ExecOptions) (status int, err error) {
	args, err := l.execArgs(o)
	if err != nil {
		return 0, err
	}
	overlay, err := l.execOverlay(o)
	if err != nil {
		return 0, err
	}
	initrd, err := l.image.Initrd(overlay)
	if err != nil {
		return 0, err
	}
	err = machine.Boot(ctx, l.cache, machine.Guest{
		Emulator: l.emulator.Path,
		Args:     args,
		Initrd:   initrd,
		Deadline: o.Deadline,
		CPUs:     o.CPUs,
		Console:  o.Console,
	}, func(e plan.Event) (err error) {
		switch e.Kind {
		case "log":
			_, err = io.WriteString(o.Output, e.Text)
		case "done":
			status, err = strconv.Atoi(e.Text)
		}
		return err
	})
	return status, err
}

// execArgs are the machine's. The deterministic one has the ladder's speed, and so its numbers of CPUs.
func (l *Lab) execArgs(o ExecOptions) ([]string, error) {
	if o.Quantum == 0 && o.Topology != "" {
		smp, err := machine.ParseTopology(o.Topology)
		return machine.FastArgs(smp, kernels.Vmlinuz(l.cache, l.Kernel), o.Append...), err
	}
	if o.Topology != "" {
		return nil, exit.New(exit.Usage, "leave out --deterministic, or --topology", "the deterministic machine has one topology")
	}
	if o.Quantum == 0 {
		return machine.FastArgs(strconv.Itoa(o.CPUs), kernels.Vmlinuz(l.cache, l.Kernel), o.Append...), nil
	}
	s, err := machine.OfSize(o.CPUs)
	if err != nil {
		return nil, err
	}
	kernel, err := kernels.Steady(l.cache, l.Kernel)
	return machine.DeterministicArgs(s, kernel, o.Append...), err
}

// execOverlay holds the command, the files that come with it, temper and temper-lab (a ladder's guest has
// neither: it would change the guest's hash with every change to these programs).
func (l *Lab) execOverlay(o ExecOptions) (image.Archive, error) {
	text, err := json.Marshal(plan.Command{Argv: o.Argv, Env: o.Env, Quantum: o.Quantum})
	if err != nil {
		return nil, err
	}
	overlay := image.Archive{}
	overlay.Data("exec.json", text)
	for _, program := range []string{assets.Temper, assets.Lab} {
		path, err := l.assets.File(program)
		if err != nil {
			return nil, err
		}
		overlay.Program(program, path)
	}
	for name, host := range o.Files {
		if err := overlay.Bring(name, host); err != nil {
			return nil, err
		}
	}
	return overlay, nil
}
