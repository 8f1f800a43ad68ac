package main

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/path/fencedemo"
)

func TestDemoThatIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	page := filepath.Join(t.TempDir(), "page.html")
	out, err := run(ctx, "demo", "--listen", "localhost:0", "--html", page, "--json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []fencedemo.Row
	if err := json.Unmarshal([]byte(out), &rows); err != nil || len(rows) != 8 {
		t.Errorf("%d rows and %v, want 8 (2 paths, the warehouse quick and slow, 2 shops): %s", len(rows), err, out)
	}
	if kept, err := os.ReadFile(page); err != nil || !strings.HasSuffix(string(kept), "</html>\n") {
		t.Errorf("the page: %v, %.80q, want it kept", err, kept)
	}
}

func TestDemoThatCannotBe(t *testing.T) {
	taken, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, c := range []struct {
		name   string
		args   []string
		status int
		says   string
	}{
		{"too short", []string{"--for", "1s"}, exit.Usage, "use 10s or more"},
		{"an address that is taken", []string{"--listen", taken.Addr().String()}, exit.Failed, "--listen"},
		{"a folder that is not there", []string{"--listen", "localhost:0", "--html", "no/such/page.html"}, exit.Failed, "no/such/page.html"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, err := run(ctx, append([]string{"demo"}, c.args...)...)
			if exit.StatusOf(err) != c.status || err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("status %d, %v; want %d, %q", exit.StatusOf(err), err, c.status, c.says)
			}
		})
	}
}
