package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"temper.dev/temper/internal/base/cli"
	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/live"
	"temper.dev/temper/internal/path/fencedemo"
)

type demoFlags struct {
	length       time.Duration
	listen, html string
	asJSON       bool
}

func newDemoCommand() *cobra.Command {
	var f demoFlags
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "See what a fence does, in a browser: two shops, one of them fenced, and a warehouse that gets slow",
		Long: `Start two shops in this process and send both the same requests for items and orders. They differ in nothing but the
fence. An order calls a warehouse, which answers in 2 s instead of 20 ms during the second quarter of the time; an item
needs nothing else.

The page, whose address is printed, shows what either shop answers in time, as it happens, and makes the warehouse slow
or quick at a click; 'pathfence top http://localhost:8090/pathfence' shows meanwhile what the fence does. At the end, or after Ctrl-C, the results are printed. Only this machine can reach the page, unless
--listen says otherwise.`,
		Example: `  pathfence demo
  pathfence demo --for 10m
  pathfence demo --for 20s --json | jq '.[] | {path, warehouse, fence, in_time, sent}'`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	cmd.Flags().DurationVar(&f.length, "for", time.Minute, "how long it takes")
	cmd.Flags().StringVar(&f.listen, "listen", "localhost:8090", "address of the page")
	cmd.Flags().StringVar(&f.html, "html", "", "keep the page, as it is at the end, in this file")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print the results as JSON")
	return cmd
}

// shortestDemo leaves each part of it some seconds.
const shortestDemo = 10 * time.Second

func (f *demoFlags) run(cmd *cobra.Command) error {
	if f.length < shortestDemo {
		return exit.New(exit.Usage, fmt.Sprintf("use %v or more", shortestDemo), "--for %v is too short to see anything", f.length)
	}
	demo, err := fencedemo.New()
	if err != nil {
		return exit.New(exit.Failed, "", "the shops do not start: %w", err)
	}
	defer demo.Close()
	listener, err := net.Listen("tcp", f.listen)
	if err != nil {
		return exit.New(exit.Failed, "give another address with --listen, as in localhost:0", "the page cannot be served: %w", err)
	}
	server := &http.Server{Handler: demo.Page(), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }() // ends with Close
	defer server.Close()
	fmt.Fprintf(cmd.ErrOrStderr(), "The page: http://%s\n", listener.Addr())

	f.play(cmd, demo)
	if f.html != "" {
		if err := os.WriteFile(f.html, []byte(demo.HTML(false)), 0o644); err != nil {
			return exit.New(exit.Failed, "", "%w", err)
		}
	}
	if f.asJSON {
		out := json.NewEncoder(cmd.OutOrStdout())
		out.SetIndent("", "  ")
		return out.Encode(demo.Rows())
	}
	return fencedemo.WriteTable(cmd.OutOrStdout(), demo.Rows())
}

// play lets the warehouse be slow in the second quarter, and says each second what happens.
func (f *demoFlags) play(cmd *cobra.Command, demo *fencedemo.Demo) {
	ctx, cancel := context.WithTimeout(cmd.Context(), f.length)
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		demo.Run(ctx)
	}()
	line := live.NewLine(cmd.ErrOrStderr())
	defer line.End()
	slow, quick := time.After(f.length/4), time.After(f.length/2)
	ticks := time.NewTicker(time.Second)
	defer ticks.Stop()
	for {
		select {
		case <-slow:
			demo.Slow(true)
		case <-quick:
			demo.Slow(false)
		case <-ticks.C:
			line.Show(fmt.Sprintf("%s, %s left", demo.Said(), live.Clock(f.length-time.Since(line.Start()))))
		case <-ctx.Done():
			<-ended
			return
		}
	}
}
