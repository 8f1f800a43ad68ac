package nodetop

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"temper.dev/temper/internal/base/cli"
	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/live"
)

// Options are the flags of commands that show nodes.
type Options struct {
	every      time.Duration
	once, json bool
	order      string
}

// AddFlags gives a command its flags.
func (o *Options) AddFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.DurationVar(&o.every, "every", 2*time.Second, "time between looks")
	flags.BoolVar(&o.once, "once", false, "look once")
	flags.BoolVar(&o.json, "json", false, "print JSON: one line each look, by name")
	flags.StringVar(&o.order, "sort", Orders[0], "order of the tables: "+strings.Join(Orders, ", "))
	cli.Exclusive(cmd, "json", "sort")
	if err := cmd.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions(Orders, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // there is such a flag
	}
}

// Check says what is wrong with them.
func (o *Options) Check() error {
	if !slices.Contains(Orders, o.order) {
		return exit.New(exit.Usage, "use one of "+strings.Join(Orders, ", "), "--sort %s is not known", o.order)
	}
	return live.CheckEvery(o.every)
}

// Show shows look after look until the command is interrupted, or one.
func (o *Options) Show(cmd *cobra.Command, table Table, look func(context.Context) *Round) error {
	out := cmd.OutOrStdout()
	table.Order, table.Colour = o.order, !o.once && cli.Colours(out)
	view := live.View[*Round]{Look: look, Compare: Compare, Write: table.Write, JSON: o.json}
	if !o.once {
		return view.Run(cmd.Context(), out, o.every)
	}
	seen, err := view.Once(cmd.Context(), out)
	if err == nil && seen.Error != "" {
		err = exit.New(exit.Failed, "", "%s cannot be asked: %s", table.asked(), seen.Error)
	}
	return err
}
