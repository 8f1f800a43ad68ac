package main

import (
	"github.com/spf13/cobra"

	"temper.dev/temper/internal/cli"
	"temper.dev/temper/lab"
)

func newLabCommand() *cobra.Command {
	cmd := cli.Group(&cobra.Command{
		Use:   "lab",
		Short: "Measure schedulers in a deterministic virtual machine",
		Long: `Measure schedulers in a deterministic virtual machine.

The lab boots one of Debian's kernels under QEMU's instruction counting: time advances with executed
instructions, not with the host's clock. The same seed gives the same figures to the last digit, on
any host, however busy. It needs no KVM and no root. For ladders, one instruction of the kernel's idle
loop is replaced, so that a CPU has the same speed whether its neighbours idle or not.

A ladder raises background load in steps; an arm is a way to schedule; a window is one step of one
arm. Latencies are in guest time: compare them with each other, not with those of real hardware.`,
		Example: `  temper lab ladder memcached --arms eevdf,cpuidle,temper --json record.json
  temper lab study chain --arms eevdf,cpuidle --seeds 1-10 --out records/aa
  temper lab exec -- uname -a`,
	})
	cmd.AddCommand(newLabLadderCommand(), newLabStudyCommand(), newLabExecCommand(), newLabChaosCommand(), newLabKernelsCommand(), newLabSurveyCommand(), newLabCostCommand(), newLabObserveCommand(), newLabLimitsCommand())
	return cmd
}

// machineFlags choose the machine, the same for every lab command that starts one.
type machineFlags struct{ kernel, assets string }

func (f *machineFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.kernel, "kernel", lab.DefaultSeries, "kernel series, version or release; the newest cached one that fits, else the newest in the archive")
	cmd.Flags().StringVar(&f.assets, "assets", "", "folder that 'make build' filled (default: the one above this program's)")
	_ = cmd.RegisterFlagCompletionFunc("kernel", completeKernel)
	_ = cmd.MarkFlagDirname("assets")
}

func (f *machineFlags) options() lab.Options {
	return lab.Options{Kernel: f.kernel, Assets: lab.Assets(f.assets)}
}

func completeKernel(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	names := []string{lab.DefaultSeries}
	if cache, err := lab.DefaultCache(); err == nil {
		kernels, _ := cache.CachedKernels() // completion has nobody to tell of errors
		for _, k := range kernels {
			names = append(names, k.Release)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
