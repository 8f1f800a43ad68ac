package run

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"strconv"
	"syscall"

	"temper.dev/temper/internal/base/cgroup"
	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/node/enforce"
)

// Options say what to run, and how.
type Options struct {
	Root   host.Root
	Tier   tier.Tier
	Name   string // of the cgroup; the process id by default
	Weight int    // cpu.weight; 0: the kernel's default
	Argv   []string
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	// Signals are passed on to the command.
	Signals <-chan os.Signal
}

// Run runs the command in its own cgroup and returns its exit status as a shell would
// (128 + signal if a signal ended it). What is to be said about the tier goes to Stderr.
func Run(o Options) (status int, err error) {
	program, err := exec.LookPath(o.Argv[0])
	if err != nil {
		return 0, exit.New(exit.NotFound, "", "cannot run %s: %w", o.Argv[0], err)
	}
	cg, err := makeCgroup(o)
	if err != nil {
		return 0, err
	}
	defer func() {
		if left := syscall.Rmdir(o.Root.Cgroup(cg)); left != nil {
			fmt.Fprintf(o.Stderr, "temper run: %s stays, since something of the command is left in it: %v\n", cg, left)
		}
	}()
	if err := applyTier(o, cg); err != nil {
		return 0, err
	}
	return runIn(o, cg, program)
}

func makeCgroup(o Options) (string, error) {
	if err := cgroup.Check(o.Root); err != nil {
		return "", err
	}
	name := o.Name
	if name == "" {
		name = strconv.Itoa(os.Getpid())
	}
	cg := path.Join(Slice, cgroupName(o.Tier, name))
	if err := os.MkdirAll(o.Root.Cgroup(Slice), 0o755); err != nil {
		return "", err
	}
	err := os.Mkdir(o.Root.Cgroup(cg), 0o755)
	if errors.Is(err, os.ErrExist) && syscall.Rmdir(o.Root.Cgroup(cg)) == nil { // left by a command whose children outlived it
		err = os.Mkdir(o.Root.Cgroup(cg), 0o755)
	}
	if errors.Is(err, os.ErrExist) {
		return "", exit.New(exit.Failed, "choose another --name, or end what runs there and remove the directory", "%s exists", o.Root.Cgroup(cg))
	}
	return cg, err
}

// applyTier puts the cgroup in its tier by whichever rung is in force, before anything runs in it.
func applyTier(o Options, cg string) error {
	if _, err := cgroup.EnableCPU(o.Root, cg); err != nil {
		return err
	}
	if o.Weight != 0 {
		if err := os.WriteFile(o.Root.Cgroup(cg+"/cpu.weight"), []byte(strconv.Itoa(o.Weight)), 0); err != nil {
			return err
		}
	}
	scheduler, err := o.Root.Scheduler()
	if err != nil {
		return err
	}
	if scheduler.IsTemper() {
		return mapTier(o, cg)
	}
	if o.Tier != tier.Background {
		fmt.Fprintf(o.Stderr, "temper run: Temper's scheduler is not attached, so tier %s makes no difference now; see 'temper status'\n", o.Tier)
		return nil
	}
	if err := os.WriteFile(o.Root.Cgroup(cg+"/cpu.idle"), []byte("1"), 0); err != nil {
		return exit.New(exit.Failed, "attach scx_temper, or run Linux 5.15 or later", "cannot put %s in tier background: %w", cg, err)
	}
	lost := ""
	if o.Weight != 0 { // the kernel forgets it, and nobody will know it when the scheduler comes
		lost = ", for which the kernel drops --weight for good"
	}
	fmt.Fprintf(o.Stderr, "temper run: Temper's scheduler is not attached, so the command has cpu.idle=1 instead%s; see 'temper status'\n", lost)
	return nil
}

func mapTier(o Options, cg string) error {
	tiers, err := enforce.OpenTierMap(o.Root.Pins())
	if err != nil {
		return err
	}
	defer tiers.Close()
	id, err := cgroup.ID(o.Root, cg)
	if err != nil {
		return err
	}
	if err := tiers.Set(id, enforce.Assign(o.Tier, "")); err != nil {
		return err
	}
	tiers.Publish()
	return nil
}

// runIn starts the command inside the cgroup: not a cycle of it runs outside.
func runIn(o Options, cg, program string) (int, error) {
	dir, err := os.Open(o.Root.Cgroup(cg))
	if err != nil {
		return 0, err
	}
	defer dir.Close()
	cmd := exec.Command(program, o.Argv[1:]...)
	cmd.Args[0] = o.Argv[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = o.Stdin, o.Stdout, o.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	if err := cmd.Start(); err != nil {
		return 0, exit.New(exit.Failed, "", "cannot start %s in %s: %w", program, cg, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case signal := <-o.Signals:
			if err := cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
				fmt.Fprintf(o.Stderr, "temper run: cannot pass on %v: %v\n", signal, err)
			}
		case err := <-ended:
			return statusOf(err)
		}
	}
}

func statusOf(err error) (int, error) {
	failure, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return 0, err
	}
	status := failure.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return status.ExitStatus(), nil
}
