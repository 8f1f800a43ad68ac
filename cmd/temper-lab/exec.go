package main

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"temper.dev/temper/internal/base/cli"
	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/lab/plan"
	"temper.dev/temper/lab/run"
)

func newExecCommand() *cobra.Command {
	var machine machineFlags
	var files []string
	var deterministic bool
	o := run.ExecOptions{}
	cmd := &cobra.Command{
		Use:   "exec [flags] -- CMD [ARG]...",
		Short: "Run a command in a guest, as root, on a kernel of choice",
		Long: `Run a command in a fresh guest, as root, on a kernel of choice, and leave with its status. The guest
has busybox, memcached, temper, temper-lab, scx_temper and the load generators, and no network. It runs in the
fast mode, several host threads and the host's clock: right for trying what works, wrong for
measuring. With --deterministic it is the machine of 'temper-lab ladder', with 3, 6, 12 or 24 CPUs, whose time is
its executed instructions. Nothing it does outlives it.`,
		Example: `  temper-lab exec -- uname -r
  temper-lab exec --kernel 7.0 -- temper doctor
  temper-lab exec --append isolcpus=1 -- temper doctor
  temper-lab exec --topology 1x2x2 -- cat /sys/devices/system/cpu/cpu0/topology/thread_siblings_list
  temper-lab exec --file /bin/curl=/usr/bin/curl -- curl --version
  temper-lab exec --file /etc/temper.yaml=packaging/temper.yaml -- temper agent --config /etc/temper.yaml`,
		Args: cli.AtLeast("CMD"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.Files, err = parseFiles(files); err != nil {
				return err
			}
			for _, pair := range o.Env {
				if name, _, ok := strings.Cut(pair, "="); !ok || name == "" {
					return exit.New(exit.Usage, "write --env NAME=VALUE", "%q sets no variable", pair)
				}
			}
			if o.CPUs < 1 || o.CPUs > 32 {
				return exit.New(exit.Usage, "", "the guest can have 1 to 32 CPUs, not %d", o.CPUs)
			}
			if deterministic {
				o.Quantum = plan.DefaultQuantum
			}
			o.Argv, o.Output = args, cmd.OutOrStdout()
			o.Again = func(why error) {
				first, _, _ := strings.Cut(why.Error(), "; its console")
				fmt.Fprintf(cmd.ErrOrStderr(), "temper-lab: %s; again, in a new guest\n", first)
			}
			options := machine.options()
			options.Notify = func(what string) { fmt.Fprintln(cmd.ErrOrStderr(), what) }
			status, err := run.Exec(cmd.Context(), options, o)
			if err == nil && status != 0 {
				return &exit.Error{Status: status, Cause: fmt.Errorf("%s left with status %d in the guest", args[0], status)}
			}
			return err
		},
	}
	machine.register(cmd)
	cmd.Flags().IntVar(&o.CPUs, "cpus", 3, "virtual CPUs")
	cmd.Flags().StringVar(&o.Topology, "topology", "", "`SOCKETSxCORESxTHREADS` of the virtual CPUs, instead of --cpus; not with --deterministic")
	cmd.Flags().BoolVar(&deterministic, "deterministic", false, "a guest second is a number of instructions, not of the host's")
	cmd.Flags().StringArrayVar(&o.Append, "append", nil, "`WORD` of the kernel's command line, as isolcpus=1; may be repeated")
	cmd.Flags().StringArrayVar(&files, "file", nil, "GUESTPATH=HOSTPATH: put a file or a folder into the guest, with the libraries that its programs need; may be repeated")
	cmd.Flags().StringArrayVar(&o.Env, "env", nil, "NAME=VALUE: set a variable for the command; may be repeated")
	cmd.Flags().DurationVar(&o.Deadline, "timeout", 10*time.Minute, "stop the guest after this time; a fast one first says where each task hangs")
	cmd.Flags().StringVar(&o.Console, "console", "", "keep what the guest's kernel says in this file")
	return cmd
}

func parseFiles(pairs []string) (map[string]string, error) {
	files := map[string]string{}
	for _, pair := range pairs {
		guest, host, ok := strings.Cut(pair, "=")
		if !ok || !strings.HasPrefix(guest, "/") || host == "" {
			return nil, exit.New(exit.Usage, "write --file /path/in/guest=path/on/host", "%q is no pair of paths", pair)
		}
		if top, _, _ := strings.Cut(path.Clean(guest)[1:], "/"); slices.Contains([]string{"dev", "proc", "sys"}, top) {
			return nil, exit.New(exit.Usage, "choose another folder", "%s would not be seen: the kernel's files are mounted on /%s", guest, top)
		}
		files[guest] = host
	}
	return files, nil
}
