package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/path/fencetop"
)

// endpoint counts how often it was asked, each time with one more request granted.
func endpoint(t *testing.T, asked func(n int64)) string {
	t.Helper()
	var granted atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := granted.Add(1)
		_ = json.NewEncoder(w).Encode(fencetop.State{Workers: 4, Classes: []fencetop.Class{{Name: "orders", Granted: n}}})
		asked(n)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func run(ctx context.Context, args ...string) (string, error) {
	var out bytes.Buffer
	root := newRootCommand()
	root.SetOut(&out)
	root.SetErr(io.Discard)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	return out.String(), err
}

func TestTopGoesOnUntilItIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	target := endpoint(t, func(n int64) {
		if n == 4 {
			cancel()
		}
	})
	out, err := run(ctx, "top", target, "--every", "100ms", "--json")
	if err != nil {
		t.Fatal(err)
	}
	rounds := strings.Split(strings.TrimSpace(out), "\n")
	if len(rounds) != 3 {
		t.Fatalf("%d rounds: %s", len(rounds), out)
	}
	var first, last []fencetop.Look
	if err := json.Unmarshal([]byte(rounds[0]), &first); err != nil || first[0].Changes != nil {
		t.Errorf("%v: %s", err, rounds[0])
	}
	if err := json.Unmarshal([]byte(rounds[2]), &last); err != nil || last[0].State.Classes[0].Granted != 3 || last[0].Changes[0].Granted <= 0 {
		t.Errorf("%v: %s", err, rounds[2])
	}
}

func TestTopOnce(t *testing.T) {
	target := endpoint(t, func(int64) {})
	out, err := run(t.Context(), "top", "--once", target)
	if err != nil || !strings.Contains(out, "0 of 4 workers taken") || strings.Contains(out, "\x1b") {
		t.Errorf("%v: %q", err, out)
	}
	out, err = run(t.Context(), "top", "--once", target, "http://127.0.0.1:1/none")
	if exit.StatusOf(err) != exit.Failed || !strings.Contains(out, "cannot be asked") || !strings.Contains(out, "orders") {
		t.Errorf("%v: %q", err, out)
	}
}

func TestTopRefuses(t *testing.T) {
	for _, args := range [][]string{{}, {"localhost:8080"}, {"/run/s", "--every", "1ms"}, {"/run/s", "--evry", "1s"}} {
		if out, err := run(t.Context(), append([]string{"top"}, args...)...); exit.StatusOf(err) != exit.Usage || out != "" {
			t.Errorf("%v: %v, %q", args, err, out)
		}
	}
}
