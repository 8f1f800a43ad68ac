// Command guest is the first process of the lab's virtual machine. It does what the host has put
// into the initrd: a ladder (/plan.json), the costs of scheduling (/costs.json), a service under a limit (/limits.json), or
// one command (/exec.json). It answers on the second serial port, one plan.Event a line, and powers the machine off.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"temper.dev/temper/lab/plan"
)

func main() {
	if err := run(context.Background()); err != nil {
		emit(plan.Event{Kind: "error", Text: err.Error()})
	}
	unix.Sync()
	// Reached only by init: returning would make the kernel panic.
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
}

func run(ctx context.Context) error {
	if err := mountAll(); err != nil {
		return err
	}
	if err := openData(); err != nil {
		return err
	}
	for _, job := range jobs {
		text, err := os.ReadFile(job.order)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return err
		}
		return job.do(ctx, text)
	}
	return fmt.Errorf("the initrd holds no order")
}

// jobs are what a host can order, each by a file.
var jobs = []struct {
	order string
	do    func(context.Context, []byte) error
}{
	{"/plan.json", ordered(runLadder)},
	{"/costs.json", ordered(runCosts)},
	{"/limits.json", ordered(runLimits)},
	{"/exec.json", ordered(runCommand)},
}

func ordered[T any](do func(context.Context, T) error) func(context.Context, []byte) error {
	return func(ctx context.Context, text []byte) error {
		var order T
		if err := json.Unmarshal(text, &order); err != nil {
			return err
		}
		return do(ctx, order)
	}
}

// data is the serial port that carries events; the console stays the kernel's.
var data = os.Stderr

func openData() error {
	port, err := os.OpenFile("/dev/ttyS1", os.O_WRONLY|unix.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	// A terminal would turn each newline into two characters.
	attr, err := unix.IoctlGetTermios(int(port.Fd()), unix.TCGETS)
	if err != nil {
		return fmt.Errorf("/dev/ttyS1: %w", err)
	}
	attr.Oflag &^= unix.OPOST
	if err := unix.IoctlSetTermios(int(port.Fd()), unix.TCSETS, attr); err != nil {
		return fmt.Errorf("/dev/ttyS1: %w", err)
	}
	data = port
	return nil
}

func emit(e plan.Event) {
	line, err := json.Marshal(e)
	if err != nil {
		panic(err) // an Event holds nothing that JSON cannot
	}
	if _, err := data.Write(append(line, '\n')); err != nil {
		fmt.Fprintln(os.Stderr, "guest: data port:", err)
	}
}
