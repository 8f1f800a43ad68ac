package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"temper.dev/temper/internal/base/cli"
	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/live"
	"temper.dev/temper/internal/path/fencetop"
)

func newTopCommand() *cobra.Command {
	var every time.Duration
	var once, asJSON bool
	cmd := &cobra.Command{
		Use:   "top TARGET...",
		Short: "Show what fences do, class by class, each second",
		Long: `Show what the fences of services do: of each class of paths its limit, who is in flight and who waits, what is
lent, and what was granted, shed, late or failed each second. A target is the path of the Unix socket that a C++
service opens (StateSocket), or the address of a Java service's endpoint.

On a terminal the table is drawn anew each time; elsewhere tables follow each other. A service that cannot be
asked keeps its place, with the reason. --once prints counts since the services' start, and fails if one cannot be
asked. --json prints one object a target, a round a line.

  CLASS     ~n was learned, ~un is a bucket for what is not known yet; then a path that is known to be of it
  LIMIT     the most that may be in flight; LIMIT BY is why it changed last, or together: it is that of several
            classes, which are late and call the same downstream
  RESERVE   workers that the class has a right to; LENT are those beyond
  KNEE      smallest concurrency on the plateau of goodput, as it was learned
  HOLD      how long a request keeps its worker
  MISSED    ended well, but after the deadline`,
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
			if err := live.CheckEvery(every); err != nil {
				return err
			}
			view := live.View[[]fencetop.Look]{
				Look:    func(ctx context.Context) []fencetop.Look { return fencetop.Round(ctx, targets) },
				Compare: fencetop.Compare, Write: fencetop.Write, JSON: asJSON,
			}
			if once {
				looks, err := view.Once(cmd.Context(), cmd.OutOrStdout())
				return errors.Join(err, unasked(looks))
			}
			return view.Run(cmd.Context(), cmd.OutOrStdout(), every)
		},
	}
	cmd.Flags().DurationVar(&every, "every", time.Second, "time between looks")
	cmd.Flags().BoolVar(&once, "once", false, "look once")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// unasked is the failure of the first target that could not be asked.
func unasked(looks []fencetop.Look) error {
	for _, l := range looks {
		if l.State == nil {
			return exit.New(exit.Failed, "", "%s cannot be asked: %s", l.Target, l.Error)
		}
	}
	return nil
}
