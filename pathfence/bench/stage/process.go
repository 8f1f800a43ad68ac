// Package stage is what a run stands on: processes that listen on ports of the kernel's choice, and who used the CPUs.
package stage

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Process serves until it is stopped.
type Process struct {
	Ports   map[string]int
	command *exec.Cmd
	input   io.WriteCloser
}

// Patience is how long a process may take to listen, and to end once it is told to: the shop's Java services, which start
// together, on a busy machine.
const Patience = 2 * time.Minute

// Start starts a program and waits until it says which ports it listens on.
func Start(program string, arguments ...string) (*Process, error) {
	p := &Process{command: exec.Command(program, arguments...)}
	p.command.Stderr = os.Stderr
	// Should the controller be killed, the kernel ends its processes.
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	output, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if p.input, err = p.command.StdinPipe(); err != nil {
		return nil, err
	}
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	late := time.AfterFunc(Patience, func() { _ = p.command.Process.Kill() }) // it may have ended by itself
	line, err := bufio.NewReader(output).ReadString('\n')
	late.Stop()
	if err == nil {
		p.Ports, err = parsePorts(line)
	}
	if err != nil {
		_ = p.command.Process.Kill() // it may have ended by itself
		return nil, errors.Join(fmt.Errorf("%s did not listen: %w", program, err), p.command.Wait())
	}
	return p, nil
}

// parsePorts reads "listening NAME=PORT NAME=PORT"; what only takes CPUs listens on nothing.
func parsePorts(line string) (map[string]int, error) {
	words := strings.Fields(line)
	if len(words) == 0 || words[0] != "listening" {
		return nil, fmt.Errorf("it said %q", line)
	}
	ports := map[string]int{}
	for _, w := range words[1:] {
		name, number, _ := strings.Cut(w, "=")
		port, err := strconv.Atoi(number)
		if err != nil {
			return nil, fmt.Errorf("it said %q: %w", line, err)
		}
		ports[name] = port
	}
	return ports, nil
}

// Say writes a line to its standard input.
func (p *Process) Say(line string) error {
	_, err := io.WriteString(p.input, line+"\n")
	return err
}

// Freeze stops it where it is, as a collector's pause does.
func (p *Process) Freeze() error { return p.command.Process.Signal(syscall.SIGSTOP) }

// Thaw lets it go on.
func (p *Process) Thaw() error { return p.command.Process.Signal(syscall.SIGCONT) }

// PID is its process id.
func (p *Process) PID() int { return p.command.Process.Pid }

// Stop ends it, and fails if it had ended before, or not as it should.
func (p *Process) Stop() error {
	if err := p.Thaw(); err != nil {
		return fmt.Errorf("%s has ended: %w", p.command.Path, errors.Join(err, p.command.Wait()))
	}
	late := time.AfterFunc(Patience, func() { _ = p.command.Process.Kill() }) // it may have ended meanwhile
	defer late.Stop()
	return errors.Join(p.input.Close(), p.command.Wait())
}
