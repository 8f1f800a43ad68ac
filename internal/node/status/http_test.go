package status

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"temper.dev/temper/internal/base/host"
)

// served starts what answers scrapes, and returns its address and what ends it.
func served(t *testing.T) (address string, end context.CancelFunc) {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free.Close()
	ctx, end := context.WithCancel(t.Context())
	if err := Serve(ctx, free.Addr().String(), host.Root(t.TempDir())); err != nil {
		t.Fatal(err)
	}
	return free.Addr().String(), end
}

// connect opens a connection, on which nothing is sent yet.
func connect(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// exchange sends bytes on a connection, and returns the response to a method and its body.
func exchange(t *testing.T, conn net.Conn, method, sent string) (*http.Response, string) {
	t.Helper()
	if _, err := io.WriteString(conn, sent); err != nil {
		t.Fatal(err)
	}
	received, err := io.ReadAll(conn) // to its end: the server closes
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(received)), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%v: %q", err, received)
	}
	_, body, _ := bytes.Cut(received, []byte("\r\n\r\n"))
	if answer.Header.Get("Date") == "" || !answer.Close || method != http.MethodHead && answer.ContentLength != int64(len(body)) {
		t.Errorf("want a response that says its date and length, and that it is the last one: %q", received)
	}
	return answer, string(body)
}

func TestScrapesAreAnswered(t *testing.T) {
	address, _ := served(t)
	const figures, text = "# TYPE temper_enforced gauge\n", "text/plain; version=0.0.4; charset=utf-8"
	for _, c := range []struct {
		name, method, sent string
		status             int
		kind, encoding     string
		has                string
	}{
		{"a scrape", "GET", "GET /metrics HTTP/1.1\r\nHost: n\r\n\r\n", 200, text, "", figures},
		{"one that takes gzip", "GET", "GET /metrics HTTP/1.1\r\nHost: n\r\nAccept-Encoding: gzip\r\n\r\n", 200, text, "gzip", "\x1f\x8b"},
		{"of HTTP/1.0", "GET", "GET /metrics HTTP/1.0\r\n\r\n", 200, text, "", figures},
		{"no body is asked for", "HEAD", "HEAD /metrics HTTP/1.1\r\nHost: n\r\n\r\n", 200, text, "", ""},
		{"another page", "GET", "GET / HTTP/1.1\r\nHost: n\r\n\r\n", 404, "text/plain; charset=utf-8", "", "404 page not found\n"},
		{"another method, with a body", "POST", "POST /metrics HTTP/1.1\r\nHost: n\r\nContent-Length: 500000\r\n\r\n" + strings.Repeat("a", 500_000), 405, "text/plain; charset=utf-8", "", "Method Not Allowed\n"},
		{"no HTTP", "GET", "hello\r\n\r\n", 400, "text/plain; charset=utf-8", "", `malformed HTTP request "hello"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			answer, body := exchange(t, connect(t, address), c.method, c.sent)
			if h := answer.Header; answer.StatusCode != c.status || !strings.HasPrefix(h.Get("Content-Type"), c.kind) || h.Get("Content-Encoding") != c.encoding {
				t.Errorf("status %d, %v; want %d, %s, encoding %q", answer.StatusCode, h, c.status, c.kind, c.encoding)
			}
			if !strings.Contains(body, c.has) || c.has == "" && body != "" {
				t.Errorf("got %q, want it with %q", body, c.has)
			}
		})
	}
}

func TestScrapesWaitForNoOtherClientAndEndWithTheAgent(t *testing.T) {
	address, end := served(t)
	silent := connect(t, address)
	for range 2 { // the second on a connection of its own, though the client would have kept the first
		answer, err := http.Get("http://" + address + "/metrics")
		if err != nil {
			t.Fatalf("beside a client that sends nothing: %v", err)
		}
		answer.Body.Close()
	}
	if answer, body := exchange(t, silent, "GET", "GET /metrics HTTP/1.1\r\nHost: n\r\n\r\n"); answer.StatusCode != http.StatusOK {
		t.Errorf("the client that was silent: status %d, %s", answer.StatusCode, body)
	}
	end()
	for {
		conn, err := net.Dial("tcp", address)
		if errors.Is(err, syscall.ECONNREFUSED) {
			return
		}
		if err == nil {
			conn.Close()
		} else if !errors.Is(err, syscall.ECONNRESET) { // it was waiting to be accepted
			t.Fatal(err)
		}
	}
}

func TestHandlerThatPanicsIsOneResponse(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "half of it")
		if r.URL.Path == "/bad" {
			panic("of the test")
		}
	}))
	for _, c := range []struct {
		path   string
		status int
		body   string
	}{
		{"/bad", http.StatusInternalServerError, "the handler has failed\n"},
		{"/good", http.StatusOK, "half of it"},
	} {
		answer, body := exchange(t, connect(t, listener.Addr().String()), "GET", "GET "+c.path+" HTTP/1.1\r\nHost: n\r\n\r\n")
		if answer.StatusCode != c.status || body != c.body {
			t.Errorf("%s: status %d, %q; want %d, %q", c.path, answer.StatusCode, body, c.status, c.body)
		}
	}
}
