package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"temper.dev/temper/internal/base/cli"
	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/path/fenceprofile"
	"temper.dev/temper/internal/path/fencetop"
	"temper.dev/temper/pathfence/go/core"
)

type profileFlags struct {
	config, out, state string
	classes            []string
	length             time.Duration
	asJSON             bool
}

func newProfileCommand() *cobra.Command {
	var f profileFlags
	cmd := &cobra.Command{
		Use:   "profile --config FILE --class NAME=SOURCE...",
		Short: "Measure what concurrency each class makes use of, for its limit to start from",
		Long: `Ramp each class on a service that nobody else uses, and write the configuration with what was found: the class's
limit, a quarter above the smallest concurrency on the plateau of goodput, and how long a request holds its worker.
A fence learns both while it runs; a profile spares it that after each start.

The source of a class is an http(s) address that is asked with GET, 1, 2, 3, 4, 6, 8 and more at a time up to the
workers of the configuration; or a file, of what your own load generator has measured, for Thrift and gRPC: lines of
concurrency, good answers a second, and the median time of a request in ms. A class needs four concurrencies or more.

Good is what is answered well (2xx) and within the class's target. The fence must be off meanwhile: with --state that is
asked; else it is said on standard error that it was not. Curves are drawn on standard error, the configuration is
written to standard output or --out.`,
		Example: `  pathfence profile --config pathfence.json --class items=http://staging:8080/items/7 --state http://staging:8080/actuator/pathfence
  pathfence profile --config pathfence.json --class orders=orders.csv --out profiled.json`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	cmd.Flags().StringVar(&f.config, "config", "", "the service's configuration")
	cmd.Flags().StringArrayVar(&f.classes, "class", nil, "class and its source, as NAME=http://... or NAME=FILE; can be given again")
	cmd.Flags().StringVar(&f.state, "state", "", "where the fence says whether it is off, as for 'pathfence top'")
	cmd.Flags().DurationVar(&f.length, "length", 5*time.Second, "time at each concurrency")
	cmd.Flags().StringVar(&f.out, "out", "", "file for the configuration (default: standard output)")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print the curves as JSON to standard output; needs --out")
	return cmd
}

func (f *profileFlags) run(cmd *cobra.Command) error {
	cfg, err := f.check()
	if err != nil {
		return err
	}
	if err := f.checkOff(cmd.Context(), cmd.ErrOrStderr()); err != nil {
		return err
	}
	var profiles []fenceprofile.Profile
	for _, c := range f.classes {
		name, source, _ := strings.Cut(c, "=")
		steps, err := f.measure(cmd.Context(), cmd.ErrOrStderr(), cfg, name, source)
		if errors.Is(cmd.Context().Err(), context.Canceled) {
			return exit.New(exit.Interrupted, "", "interrupted; nothing was written")
		}
		if err != nil {
			return exit.New(exit.Failed, "", "class %s: %w", name, err)
		}
		p, err := fenceprofile.Of(name, steps)
		if err != nil {
			return exit.New(exit.Failed, "", "%w", err)
		}
		p.Write(cmd.ErrOrStderr())
		profiles = append(profiles, p)
	}
	fenceprofile.Put(cfg, profiles)
	return f.write(cmd.OutOrStdout(), cfg, profiles)
}

// check finds what is wrong before anything is measured.
func (f *profileFlags) check() (*core.Config, error) {
	usage := func(cure, format string, args ...any) error { return exit.New(exit.Usage, cure, format, args...) }
	switch {
	case f.config == "":
		return nil, usage("name it with --config", "a profile is written into a configuration")
	case len(f.classes) == 0:
		return nil, usage("name them with --class", "there are no classes to profile")
	case f.asJSON && f.out == "":
		return nil, usage("name a file with --out", "standard output is for the curves with --json")
	case f.length < 100*time.Millisecond:
		return nil, usage("use 100ms or more", "--length %v is too short", f.length)
	}
	text, err := os.ReadFile(f.config)
	if err != nil {
		return nil, usage("", "%w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	cfg := &core.Config{}
	if err := decoder.Decode(cfg); err != nil {
		return nil, exit.New(exit.Config, "", "%s: %w", f.config, err)
	}
	if _, err := core.New(*cfg, 0); err != nil {
		return nil, exit.New(exit.Config, "", "%s: %w", f.config, err)
	}
	for _, c := range f.classes {
		name, source, ok := strings.Cut(c, "=")
		if !ok || source == "" {
			return nil, usage("write it as orders=http://localhost:8080/orders/1", "--class %q has no source", c)
		}
		if !slices.ContainsFunc(cfg.Classes, func(in core.ClassConfig) bool { return in.Name == name }) {
			return nil, usage("add it there, with its keys", "%s has no class %q", f.config, name)
		}
	}
	return cfg, nil
}

func (f *profileFlags) checkOff(ctx context.Context, log io.Writer) error {
	if f.state == "" {
		fmt.Fprintln(log, "pathfence: nobody was asked whether the fence is off (--state); its limits would be measured")
		return nil
	}
	if err := fencetop.Check(f.state); err != nil {
		return exit.New(exit.Usage, "", "--state: %w", err)
	}
	s, err := fencetop.Read(ctx, f.state)
	if err != nil {
		return exit.New(exit.Failed, "", "cannot ask whether the fence is off: %w", err)
	}
	if !s.Off {
		return exit.New(exit.Failed, `switch it off: POST {"off": true}, or "off": true in its configuration`, "the fence at %s is on: its limits would be measured", f.state)
	}
	return nil
}

func (f *profileFlags) measure(ctx context.Context, log io.Writer, cfg *core.Config, name, source string) ([]fenceprofile.Step, error) {
	if !strings.HasPrefix(source, "http://") && !strings.HasPrefix(source, "https://") {
		file, err := os.Open(source)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		return fenceprofile.ReadSteps(source, file)
	}
	var steps []fenceprofile.Step
	list := fenceprofile.Steps(cfg.Workers)
	for i, concurrency := range list {
		fmt.Fprintf(log, "%s · %d at a time · step %d of %d · about %v left\n", name, concurrency, i+1, len(list), time.Duration(len(list)-i)*f.length)
		step, err := fenceprofile.Ramp(ctx, source, concurrency, targetOf(cfg, name), f.length)
		if err != nil {
			return nil, err
		}
		steps = append(steps, step)
	}
	return steps, nil
}

const defaultTarget = 250 * time.Millisecond // algorithm.md, "Configuration"

func targetOf(cfg *core.Config, class string) time.Duration {
	target := cfg.Target
	for _, c := range cfg.Classes {
		if c.Name == class && c.Target != 0 {
			target = c.Target
		}
	}
	if target == 0 {
		return defaultTarget
	}
	return time.Duration(target)
}

func (f *profileFlags) write(w io.Writer, cfg *core.Config, profiles []fenceprofile.Profile) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	if f.out == "" {
		return encoder.Encode(cfg)
	}
	if err := host.WriteJSON(f.out, cfg); err != nil {
		return exit.New(exit.Failed, "", "%w", err)
	}
	if !f.asJSON {
		return nil
	}
	return encoder.Encode(profiles)
}
