package main

import (
	"github.com/spf13/cobra"

	"temper.dev/temper/lab/assets"
	"temper.dev/temper/lab/cache"
	"temper.dev/temper/lab/kernels"
	"temper.dev/temper/lab/run"
)

// machineFlags choose the machine, the same for every lab command that starts one.
type machineFlags struct{ kernel, assets string }

func (f *machineFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.kernel, "kernel", kernels.DefaultSeries, "kernel series, version or release; the newest cached one that fits, else the newest in the archive")
	cmd.Flags().StringVar(&f.assets, "assets", "", "folder that 'make build' filled (default: the one above this program's)")
	_ = cmd.RegisterFlagCompletionFunc("kernel", completeKernel)
	_ = cmd.MarkFlagDirname("assets")
}

func (f *machineFlags) options() run.Options {
	return run.Options{Kernel: f.kernel, Assets: assets.Folder(f.assets)}
}

func completeKernel(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	names := []string{kernels.DefaultSeries}
	if c, err := cache.Default(); err == nil {
		cached, _ := kernels.Cached(c) // completion has nobody to tell of errors
		for _, k := range cached {
			names = append(names, k.Release)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
