package main

import (
	"os"
	"os/signal"
	"regexp"
	"syscall"

	"github.com/spf13/cobra"

	"temper.dev/temper/internal/base/cli"
	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/node/run"
)

func newRunCommand() *cobra.Command {
	var root, tierName string
	o := run.Options{}
	cmd := &cobra.Command{
		Use:   "run --tier TIER [flags] -- COMMAND [ARGUMENT]...",
		Short: "Run a command in a tier",
		Long: `Run a command in a cgroup of its own below /temper.slice, in the tier that --tier names: system, critical,
standard or background. Without an attached scheduler, background is cpu.idle=1, and a line on stderr says so.
Signals are passed on, and the exit status is the command's.`,
		Example: `  temper run --tier background -- make -j8
  temper run --tier background --weight 300 --name nightly -- ./backup.sh
  temper run --tier critical -- memcached -u nobody`,
		Args: cli.AtLeast("COMMAND"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if tierName == "" {
				return exit.New(exit.Usage, "name one with --tier: system, critical, standard or background", "a tier is missing")
			}
			t, err := tier.Parse(tierName)
			if err != nil {
				return exit.New(exit.Usage, "name one with --tier", "%w", err)
			}
			if err := checkRun(o); err != nil {
				return err
			}
			if err := needRoot("temper run"); err != nil {
				return err
			}
			o.Root, o.Tier, o.Argv = host.Root(root), t, args
			o.Stdin, o.Stdout, o.Stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
			o.Signals = passedOn()
			status, err := run.Run(o)
			if err == nil && status != 0 {
				os.Exit(status) // the command's own status, about which temper has nothing to say
			}
			return err
		},
	}
	cmd.Flags().StringVar(&tierName, "tier", "", "the `TIER`: system, critical, standard or background")
	var tiers []string
	for _, t := range tier.All {
		tiers = append(tiers, t.String())
	}
	_ = cmd.RegisterFlagCompletionFunc("tier", cobra.FixedCompletions(tiers, cobra.ShellCompDirectiveNoFileComp))
	cmd.Flags().StringVar(&o.Name, "name", "", "`NAME` of the cgroup, run-TIER-NAME (default: the process id)")
	cmd.Flags().IntVar(&o.Weight, "weight", 0, "cpu.weight among the cgroups of its tier, 1 to 10000; 0: the kernel's own, 100")
	addRootFlag(cmd, &root)
	return cmd
}

var runName = regexp.MustCompile(`^[A-Za-z0-9_.-]{0,64}$`)

func checkRun(o run.Options) error {
	if !runName.MatchString(o.Name) {
		return exit.New(exit.Usage, "use up to 64 letters, digits, '.', '_' and '-'", "--name %q cannot name a cgroup", o.Name)
	}
	if o.Weight < 0 || o.Weight > 10000 {
		return exit.New(exit.Usage, "use 1 to 10000, or 0 for the kernel's own", "--weight %d is no cpu.weight", o.Weight)
	}
	return nil
}

// passedOn brings the signals that the command should get. What a terminal's keys send
// goes to the command without our help.
func passedOn() <-chan os.Signal {
	list := []os.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2}
	if !cli.IsTerminal(os.Stdin) {
		list = append(list, syscall.SIGINT, syscall.SIGQUIT)
	} else {
		signal.Ignore(syscall.SIGQUIT)
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, list...)
	return signals
}
