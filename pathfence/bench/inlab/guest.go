package inlab

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/pathfence/bench/record"
	"temper.dev/temper/pathfence/bench/trial"
)

// event is what a guest says, a line each: first its kernel, then each run's rows.
type event struct {
	Kernel string       `json:"kernel,omitempty"`
	Rows   []record.Row `json:"rows,omitempty"`
}

// Play is the guest's side: it does one repetition of a study and says what came of it.
func Play(ctx context.Context, out io.Writer, study trial.Study, repetition int) error {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return err
	}
	say := json.NewEncoder(out)
	if err := say.Encode(event{Kernel: unix.ByteSliceToString(name.Release[:])}); err != nil {
		return err
	}
	return study.Repeat(ctx, repetition, func(rows []record.Row) error { return say.Encode(event{Rows: rows}) })
}

// Guest is how guests are started.
type Guest struct {
	Lab   string // the program
	Files Files
	Log   io.Writer // for what is no event
}

// patience is how many times longer than on an idle host a guest may take.
const patience = 10

// run starts a guest that gives the benchmark some arguments, and hands over what it says.
func (g Guest) run(ctx context.Context, usual time.Duration, arguments []string, handle func(event)) error {
	line := []string{"exec", "--deterministic", "--cpus", fmt.Sprint(CPUs), "--timeout", (patience * usual).Round(time.Second).String()}
	for place, file := range g.Files {
		line = append(line, "--file", place+"="+file)
	}
	// The client's collector would make it late, and its threads wait for each other where it counts one CPU.
	for _, variable := range []string{"GOGC=off", "GOMEMLIMIT=512MiB", "GOMAXPROCS=2"} {
		line = append(line, "--env", variable)
	}
	line = append(line, "--", "taskset", "-c", clientCPU, client)
	command := exec.CommandContext(ctx, g.Lab, slices.Concat(line, arguments)...)
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	out, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	command.Stderr = command.Stdout // to be passed on, too
	if err := command.Start(); err != nil {
		return exit.New(exit.Failed, "build it with 'make build'", "%w", err)
	}
	told := g.follow(out, handle)
	if err := command.Wait(); err != nil {
		return errors.Join(told, fmt.Errorf("the guest: %w", err))
	}
	return told
}

// follow reads a guest's events, and passes other lines on.
func (g Guest) follow(out io.Reader, handle func(event)) error {
	for lines := bufio.NewReader(out); ; {
		line, err := lines.ReadString('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if !strings.HasPrefix(line, "{") {
			fmt.Fprint(g.Log, line)
			continue
		}
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			return fmt.Errorf("the guest said %q: %w", line, err)
		}
		handle(e)
	}
}
