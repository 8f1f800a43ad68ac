package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// httpload asks a server for half a second (askFor).
func httpload(t *testing.T, server net.Addr, rate, connections int, target string) (latencies []time.Duration, said string, err error) {
	t.Helper()
	return askFor(t, "httpload", server, rate, fmt.Sprint(connections), "0", "host.example:80", target)
}

// answers are kinds that servers give; a client that took the end of one wrongly would wait for ever, or refuse the next.
var answers = map[string]http.HandlerFunc{
	"of a length":     func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat("x", 1000)) },
	"empty":           func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "0") },
	"without content": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
	"in chunks": func(w http.ResponseWriter, _ *http.Request) {
		for i := range 3 {
			fmt.Fprint(w, strings.Repeat("y\r\n0\r\n\r\n", 100*i))
			w.(http.Flusher).Flush()
		}
	},
	"with a trailer": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		fmt.Fprint(w, "x")
		w.(http.Flusher).Flush()
		w.Header().Set("X-Sum", "1")
	},
	"larger than a read": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 200_000)) },
	"and a closed door": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		fmt.Fprint(w, "z")
	},
	"up to the end of file": untilClosed,
}

// untilClosed answers as HTTP/1.0 does.
func untilClosed(w http.ResponseWriter, _ *http.Request) {
	c, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\nall that there is")
	c.Close()
}

func TestHTTPLoadTakesEachKindOfAnswer(t *testing.T) {
	for name, handler := range answers {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				if r.Host != "host.example:80" || r.URL.String() != "/page?x=1" {
					t.Errorf("asked for %s of %s", r.URL, r.Host)
				}
				handler(w, r)
			}))
			defer server.Close()
			measured := 0
			for range tries {
				latencies, said, err := httpload(t, server.Listener.Addr(), 100, 4, "/page?x=1")
				if err != nil {
					t.Fatalf("%v: %s", err, said)
				}
				for _, l := range latencies {
					if l > 0 {
						measured++
					}
				}
				if measured > 0 {
					break
				}
			}
			if measured == 0 || int(asked.Load()) < measured {
				t.Errorf("%d answered, the server was asked %d times", measured, asked.Load())
			}
		})
	}
}

// A server that stands still for 100 ms is late for all that was due meanwhile, and not for one request a connection.
func TestHTTPLoadCountsFromWhenARequestWasDue(t *testing.T) {
	const stall = 100 * time.Millisecond
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 300 {
			time.Sleep(stall)
		}
	}))
	defer server.Close()
	late, due := 0, 0
	for due < 300 { // one in which the client was let run
		asked.Store(0)
		latencies, said, err := httpload(t, server.Listener.Addr(), 1000, 1, "/")
		if err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		late, due = 0, len(latencies)
		for _, l := range latencies {
			if l == 0 || l > stall/2 { // not answered in time is late, too
				late++
			}
		}
	}
	if late < 30 {
		t.Errorf("%d of %d requests were late by half of the stall, about 50 were due then", late, due)
	}
}

// A server may close a connection that it kept open, just as the next request comes.
func TestHTTPLoadAsksAgain(t *testing.T) {
	var asked atomic.Int64
	server := serve(t, func(c net.Conn) {
		in := bufio.NewReader(c)
		for first := true; ; first = false {
			if _, err := http.ReadRequest(in); err != nil || !first {
				return
			}
			asked.Add(1)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx")
		}
	})
	if n := measured(t, "httpload", server, "1", "0", "host", "/"); n == 0 || int(asked.Load()) < n {
		t.Errorf("%d answered of %d that the server saw", n, asked.Load())
	}
}

func TestHTTPLoadFindsTheSaturation(t *testing.T) {
	server := httptest.NewServer(answers["of a length"])
	defer server.Close()
	rps := 0.0
	for range tries {
		_, said, err := httpload(t, server.Listener.Addr(), 0, 4, "/")
		if _, scanErr := fmt.Sscanf(said, "saturation_rps=%f", &rps); err != nil || scanErr != nil {
			t.Fatalf("%v: said %q", err, said)
		}
		if rps > 0 {
			return
		}
	}
	t.Errorf("saturation of %g requests/s", rps)
}

func TestHTTPLoadRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"an error":       {http.NotFound, "httpload: the server answers: HTTP/1.1 404 Not Found\n"},
		"half an answer": {func(w http.ResponseWriter, _ *http.Request) { raw(w, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nx") }, "httpload: the server closes a connection before it has answered: does it speak HTTP/1.1?\n"},
		"another protocol": {func(w http.ResponseWriter, _ *http.Request) { raw(w, "220 mail.example\r\n\r\n") },
			"httpload: the server does not answer as HTTP/1.1 does: 220 mail.example\n"},
		"two answers": {func(w http.ResponseWriter, _ *http.Request) {
			raw(w, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxHTTP/1.1 200 OK\r\n\r\n")
		}, "httpload: the server sends more than an answer: HTTP/1.1 200 OK\n"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(test.handler)
			defer server.Close()
			if _, said, err := httpload(t, server.Listener.Addr(), 100, 1, "/"); err == nil || said != test.want {
				t.Errorf("%v: got %q, want %q", err, said, test.want)
			}
		})
	}
}

// raw writes bytes in place of an answer, and closes the connection.
func raw(w http.ResponseWriter, text string) {
	c, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	_, _ = io.WriteString(c, text)
	c.Close()
}
