package main

import (
	"github.com/spf13/cobra"

	"temper.dev/temper/lab"
)

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
