package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"

	"temper.dev/temper/internal/cli"
	"temper.dev/temper/internal/exit"
	"temper.dev/temper/internal/fencetop"
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

  LIMIT     the most that may be in flight; LIMIT BY is why it changed last
  RESERVE   workers that the class has a right to; LENT are those beyond
  KNEE      smallest concurrency on the plateau of goodput, as it was learned
  HOLD      how long a request keeps its worker
  MISSED    ended well, but after the deadline`,
		Example: `  pathfence top /run/orders/pathfence.sock
  pathfence top http://localhost:8080/actuator/pathfence /run/cart/pathfence.sock --every 5s
  pathfence top --once --json /run/orders/pathfence.sock | jq '.[].state.classes[] | {name, limit, shed}'`,
		Args: cli.UsageArgs(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, targets []string) error {
			for _, target := range targets {
				if err := fencetop.Check(target); err != nil {
					return exit.New(exit.Usage, "", "%w", err)
				}
			}
			if every < 100*time.Millisecond {
				return exit.New(exit.Usage, "use 100ms or more", "--every %v is too short", every)
			}
			print := printer(cmd.OutOrStdout(), asJSON)
			if once {
				return showOnce(cmd.Context(), targets, print)
			}
			return show(cmd.Context(), targets, every, print)
		},
	}
	cmd.Flags().DurationVar(&every, "every", time.Second, "time between looks")
	cmd.Flags().BoolVar(&once, "once", false, "look once")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func showOnce(ctx context.Context, targets []string, print func([]fencetop.Look) error) error {
	looks := fencetop.Round(ctx, targets)
	if err := print(looks); err != nil {
		return err
	}
	for _, l := range looks {
		if l.State == nil {
			return exit.New(exit.Failed, "", "%s cannot be asked: %s", l.Target, l.Error)
		}
	}
	return nil
}

// show looks until it is interrupted, which is how it ends.
func show(ctx context.Context, targets []string, every time.Duration, print func([]fencetop.Look) error) error {
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	before := fencetop.Round(ctx, targets)
	for {
		if err := print(before); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
		now := fencetop.Round(ctx, targets)
		if errors.Is(ctx.Err(), context.Canceled) {
			return nil
		}
		fencetop.Compare(before, now)
		before = now
	}
}

const clearScreen = "\x1b[H\x1b[2J"

// printer writes a round at one go, so that a terminal does not flicker.
func printer(w io.Writer, asJSON bool) func([]fencetop.Look) error {
	first := true
	return func(looks []fencetop.Look) error {
		var text bytes.Buffer
		switch {
		case asJSON:
			if err := json.NewEncoder(&text).Encode(looks); err != nil {
				return err
			}
		case cli.IsTerminal(w):
			text.WriteString(clearScreen)
			fencetop.Write(&text, looks)
		default:
			if !first {
				text.WriteByte('\n')
			}
			fencetop.Write(&text, looks)
		}
		first = false
		_, err := w.Write(text.Bytes())
		return err
	}
}
