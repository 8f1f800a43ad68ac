// Command temper-lab measures schedulers in a deterministic virtual machine, and reports what was measured.
package main

import (
	"github.com/spf13/cobra"

	"temper.dev/temper"
	"temper.dev/temper/internal/base/cli"
)

func main() { cli.Main(newRootCommand()) }

func newRootCommand() *cobra.Command {
	root := cli.Prepare(&cobra.Command{
		Use:   "temper-lab",
		Short: "Measure schedulers in a deterministic virtual machine",
		Long: `Measure schedulers in a deterministic virtual machine.

The lab boots one of Debian's kernels under QEMU's instruction counting: time advances with executed
instructions, not with the host's clock. The same seed gives the same figures to the last digit, on
any host, however busy. It needs no KVM and no root. For ladders, one instruction of the kernel's idle
loop is replaced, so that a CPU has the same speed whether its neighbours idle or not.

A ladder raises background load in steps; an arm is a way to schedule; a window is one step of one
arm. Latencies are in guest time: compare them with each other, not with those of real hardware.`,
		Example: `  temper-lab demo
  temper-lab ladder memcached --arms eevdf,cpuidle,temper --json record.json
  temper-lab study chain --arms eevdf,cpuidle --seeds 1-10 --out records/aa
  temper-lab bench report record.json
  temper-lab exec -- uname -a`,
	})
	root.AddCommand(newDemoCommand(), newLadderCommand(), newStudyCommand(), newBenchCommand(), newCostCommand(), newLimitsCommand(),
		newObserveCommand(), newChaosCommand(), newExecCommand(), newKernelsCommand(), newSurveyCommand())
	cli.HasVersion(root, temper.Identity())
	return root
}
