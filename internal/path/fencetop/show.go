package fencetop

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/base/live"
)

// Columns says what the tables show, for a command's help.
const Columns = `  CLASS     ~calls: and ~key: were learned, of paths that call this, or of one that calls nothing; ~un is a bucket for what
            is not known yet; then a path that is known to be of it
  LIMIT     the most that may be in flight; what was before it fell stays. LIMIT BY is why it changed last: late, stall,
            thrash and knee lower it, undo, room, probe and unused raise it; together: it is that of several classes,
            which are late and call the same downstream
  RESERVE   workers that the class has a right to; LENT are those beyond
  KNEE      smallest concurrency on the plateau of goodput, as it was learned
  HOLD      how long a request keeps its worker
  MISSED    ended well after the deadline, or its client left after it`

// Options are how often it is looked, and how that is shown.
type Options struct {
	every      time.Duration
	once, json bool
}

// AddFlags gives a command its flags.
func (o *Options) AddFlags(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&o.every, "every", time.Second, "time between looks")
	cmd.Flags().BoolVar(&o.once, "once", false, "look once")
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON")
}

// Check says what is wrong with them.
func (o *Options) Check() error { return live.CheckEvery(o.every) }

// Show shows look after look until the command is interrupted, or one, which fails if a target cannot be asked.
func (o *Options) Show(cmd *cobra.Command, look func(context.Context) []Look) error {
	view := live.View[[]Look]{Look: look, Compare: Compare, Write: Write, JSON: o.json}
	if o.once {
		looks, err := view.Once(cmd.Context(), cmd.OutOrStdout())
		if cause := cmd.Context().Err(); cause != nil {
			return cause // it is not the target's fault
		}
		return errors.Join(err, unasked(looks))
	}
	return view.Run(cmd.Context(), cmd.OutOrStdout(), o.every)
}

// unasked is the failure of the first target that could not be asked.
func unasked(looks []Look) error {
	for _, l := range looks {
		if l.State == nil {
			return exit.New(exit.Failed, "", "%s cannot be asked: %s", l.Target, host.Printable(l.Error))
		}
	}
	return nil
}
