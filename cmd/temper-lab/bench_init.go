package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"temper.dev/temper/internal/base/cli"
	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/evidence/bench"
	"temper.dev/temper/lab/listening"
	"temper.dev/temper/lab/workload"
)

func newBenchInitCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "init [PORT]",
		Short: "Write the file for 'bench run' from a service that runs on this host",
		Long: `Write the file that 'bench run' measures, from a service that runs on this host and listens on a TCP port. Without PORT,
show what listens here.

It asks the process for its program, its arguments, its folder, and which files they name; Debian for the package that
has the program; and the port for an answer in HTTP, by one GET /. Of the environment it writes names only, since values
may be secrets. What cannot be known is a comment that says what to write. Nothing is changed.

Root sees processes of all users. A container's ports are seen from its own network namespace only, and its files are
not this host's: name its programs by hand.`,
		Example: `  sudo temper-lab bench init
  sudo temper-lab bench init 80 > nginx.yaml
  temper-lab bench run nginx.yaml`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return cli.Args("PORT")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			found, err := listening.Find()
			switch {
			case err != nil:
				return err
			case len(args) == 1:
				return writeProposal(cmd, found, args[0])
			case asJSON:
				return bench.EncodeJSON(cmd.OutOrStdout(), found)
			}
			return writeListening(cmd.OutOrStdout(), found)
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) (ports []string, _ cobra.ShellCompDirective) {
			found, err := listening.Find()
			if err != nil || len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			for _, p := range found.Programs {
				ports = append(ports, cobra.CompletionWithDesc(strconv.Itoa(p.Port), p.Path))
			}
			return ports, cobra.ShellCompDirectiveNoFileComp
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "show what listens here as JSON")
	return cmd
}

func writeProposal(cmd *cobra.Command, found listening.Found, word string) error {
	port, err := strconv.Atoi(word)
	if err != nil {
		return exit.New(exit.Usage, "give a port, such as 8080", "%q is no port", word)
	}
	for _, p := range found.Programs {
		switch {
		case p.Port != port:
		case p.Contained:
			return exit.New(exit.Usage, "write the file by hand, with the programs of its image: docs/start/workload.md", "process %d, which listens on port %d, has files of its own, as a container has", p.PID, port)
		default:
			text, err := workload.Propose(p, listening.GetStatus(cmd.Context(), port))
			if err != nil {
				return err
			}
			_, err = io.WriteString(cmd.OutOrStdout(), text)
			return err
		}
	}
	for _, hidden := range found.Hidden {
		if hidden == port {
			return exit.New(exit.NotRoot, "ask as root", "port %d is of a process that only root may look at", port)
		}
	}
	return exit.New(exit.NotFound, "see what does: temper-lab bench init", "nothing listens on port %d in this network namespace", port)
}

func writeListening(out io.Writer, found listening.Found) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PORT\tPID\tPACKAGE\tPROGRAM\tCOMMAND")
	for _, p := range found.Programs {
		fmt.Fprintf(table, "%d\t%d\t%s\t%s\t%s\n", p.Port, p.PID, orDash(p.Package), p.Path, shortened(strings.Join(p.Command, " ")))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if len(found.Hidden) > 0 {
		fmt.Fprintf(out, "Only root may look at what listens on %s.\n", strings.Trim(fmt.Sprint(found.Hidden), "[]"))
	}
	_, err := fmt.Fprintln(out, "Write a file for one of them: temper-lab bench init PORT > FILE")
	return err
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// shortened is a command line for a table.
func shortened(text string) string {
	const most = 60
	if len(text) <= most {
		return text
	}
	return text[:most] + "..."
}
