package main

import (
	"context"

	"github.com/spf13/cobra"

	"temper.dev/temper/internal/base/cli"
	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/path/fencetop"
)

func newTopCommand() *cobra.Command {
	var options fencetop.Options
	cmd := &cobra.Command{
		Use:   "top TARGET...",
		Short: "Show what fences do, class by class, each second",
		Long: `Show what the fences of services do: of each class of paths its limit, who is in flight and who waits, what is
lent, and what was granted, shed, late or failed each second. A target is the path of the Unix socket that a C++
service opens (StateSocket), or the address of a Java or Go service's endpoint. Of services in a cluster,
'kubectl temper fences' shows the same.

On a terminal the table is drawn anew each time; elsewhere tables follow each other. A service that cannot be
asked keeps its place, with the reason. --once prints counts since the services' start, and fails if one cannot be
asked. --json prints one object a target, a round a line.

` + fencetop.Columns,
		Example: `  pathfence top /run/orders/pathfence.sock
  pathfence top http://localhost:8080/actuator/pathfence /run/cart/pathfence.sock --every 5s
  pathfence top --once --json /run/orders/pathfence.sock | jq '.[].state.classes[] | {name, limit, shed}'`,
		Args: cli.AtLeast("TARGET"),
		RunE: func(cmd *cobra.Command, targets []string) error {
			for _, target := range targets {
				if err := fencetop.Check(target); err != nil {
					return exit.New(exit.Usage, "", "%w", err)
				}
			}
			if err := options.Check(); err != nil {
				return err
			}
			return options.Show(cmd, func(ctx context.Context) []fencetop.Look { return fencetop.Round(ctx, targets, fencetop.Local) })
		},
	}
	options.AddFlags(cmd)
	return cmd
}
