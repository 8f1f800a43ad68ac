package main

import (
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"temper.dev/temper/internal/base/cli"
	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/node/doctor"
	"temper.dev/temper/internal/node/enforce"
	"temper.dev/temper/internal/node/status"
)

func newDoctorCommand() *cobra.Command {
	var root string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Find out whether this node can run the scheduler, and what to do if not",
		Long: `Check kernel, sched_ext, kernel type data (BTF), lockdown, cgroup v2 and its cpu controller, other schedulers,
CPU limits in force, the bpf file system, privileges, scx_temper itself, the preemption mode, isolated CPUs, which waits for
a parked task the scheduler can see (park) and, where it is attached, real-time tasks that keep others from a CPU. Each
finding has its cause and its cure. As root it makes a folder in that of the scheduler's pins, below /sys/fs/bpf, and pins a
map there, since AppArmor and SELinux may forbid that to root, too. It removes both, and changes
nothing else.

The exit status is that of the first check that failed:
  0 all well   3 not root   4 no sched_ext   5 bad BTF   6 another scheduler   7 limits present
  8 the kernel refuses BPF, or a pin   10 no cgroup v2 or no cpu controller   15 booted with isolcpus=
  1 anything else`,
		Example: `  sudo temper doctor
  sudo temper doctor --json | jq '.[] | select(.level == "fail")'`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var uname unix.Utsname
			if err := unix.Uname(&uname); err != nil {
				return err
			}
			node := doctor.Node{
				Root: host.Root(root), Release: unix.ByteSliceToString(uname.Release[:]), EUID: os.Geteuid(), FindLoader: enforce.FindLoader,
				TryPins: func() error { return enforce.TryPins(host.Root(root)) },
				RealTime: func() ([]status.RealTime, error) {
					s, err := status.Now(host.Root(root))
					if err != nil {
						return nil, err
					}
					return s.RealTime, nil
				},
			}
			checks := node.Examine()
			if asJSON {
				if err := writeJSON(cmd.OutOrStdout(), checks); err != nil {
					return err
				}
			} else {
				doctor.Write(cmd.OutOrStdout(), checks, styleOf(cmd.OutOrStdout()))
			}
			return doctor.Verdict(checks)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	addRootFlag(cmd, &root)
	return cmd
}
