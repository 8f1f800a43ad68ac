package pathfence_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	pathfence "temper.dev/temper/pathfence/go"
)

// A client without trust that gives itself too little time has its requests refused, and makes no path look slow.
func TestAClientsShortDeadlineTeachesNothing(t *testing.T) {
	s := serve(t, pathfence.Config{Workers: 32, Target: time.Minute, Window: 5 * time.Millisecond, Classes: []pathfence.Class{{Name: "it", Keys: []string{"GET:/it"}}}})
	s.mux.HandleFunc("GET /it", func(http.ResponseWriter, *http.Request) { <-time.After(5 * time.Millisecond) })
	for range 100 {
		s.get("/it", "x-pf-deadline", "1")
	}
	if it := s.fence.State().Classes[0]; it.Limit != 32 || it.Missed != 0 {
		t.Errorf("the limit is %d and %d were missed, want 32 and 0: %+v", it.Limit, it.Missed, it)
	}
}

// A proxy's client and the hosts behind it: neither speaks for the service.
func TestAProxyPassesNothingOn(t *testing.T) {
	forged := []string{"x-pf-path", "forged", "x-pf-deadline", "600000", "x-pf-visits", "below*8", "x-pf-within", "name", "baggage", "a=b,pf.visits=below%2A8"}
	for _, c := range []struct {
		name, path string
		peer       bool
		want       string // path, visits, baggage, whether a caller is named; then what the client is told
	}{
		{"to another host", "/work", false, "[] [] [a=b] false "},
		{"to another host, exempt", "/exempt", false, "[] [] [a=b] false "},
		{"to a peer", "/work", true, "[GET:/:path...] [] [a=b] true late"},
		{"to a peer, exempt", "/exempt", true, "[] [] [a=b] false late"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := make(chan string, 1)
			below := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				got <- fmt.Sprint(r.Header.Values("x-pf-path"), r.Header.Values("x-pf-visits"), r.Header.Values("baggage"), " ", r.Header.Get("x-pf-within") != "", " ")
				w.Header().Set("x-pf-shed", "late")
				w.WriteHeader(http.StatusServiceUnavailable)
			}))
			defer below.Close()
			base := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, below.Listener.Addr().String())
			}}
			s := serve(t, pathfence.Config{Workers: 1, Target: time.Minute}, pathfence.Exempt(func(r *http.Request) bool { return r.URL.Path == "/exempt" }))
			s.mux.Handle("GET /{path...}", &httputil.ReverseProxy{
				Rewrite:   func(p *httputil.ProxyRequest) { p.SetURL(&url.URL{Scheme: "http", Host: "abroad.invalid"}) },
				Transport: pathfence.Transport(base, pathfence.Peers(func(string) bool { return c.peer })),
			})
			_, _, header := s.get(c.path, forged...)
			if got := <-got + header.Get("x-pf-shed"); got != c.want {
				t.Errorf("it is %q, want %q", got, c.want)
			}
		})
	}
}

// The name of a call is good for the one arrival that it was sent with, while the call lasts.
func TestANameIsGoodOnce(t *testing.T) {
	names, answer := make(chan string), make(chan struct{})
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		names <- r.Header.Get("x-pf-within")
		<-answer
	}))
	defer thief.Close()
	s := serve(t, pathfence.Config{Workers: 1, Target: 100 * time.Millisecond})
	over := make(chan struct{})
	s.mux.HandleFunc("GET /call", func(_ http.ResponseWriter, r *http.Request) {
		for range 2 {
			call, _ := http.NewRequestWithContext(r.Context(), http.MethodGet, thief.URL, nil)
			if response, err := (&http.Client{Transport: pathfence.Transport(nil)}).Do(call); err == nil {
				response.Body.Close()
			}
		}
		close(over)
		<-s.gate
	})
	go s.get("/call")
	arrives := func(when, name string, want int) {
		t.Helper()
		if status, _, _ := s.get("/fast", "x-pf-within", name); status != want {
			t.Errorf("%s it gives %d, want %d", when, status, want)
		}
	}
	name := <-names
	arrives("the first time", name, http.StatusOK)
	arrives("the second time", name, http.StatusServiceUnavailable)
	answer <- struct{}{}
	name = <-names
	close(answer)
	<-over
	arrives("once the call is over", name, http.StatusServiceUnavailable)
}

// A deadline of a client without trust may only shorten the target, for those that are called, too.
func TestALongDeadlineIsNotPassedOn(t *testing.T) {
	sent := make(chan string, 1)
	below := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { sent <- r.Header.Get("x-pf-deadline") }))
	defer below.Close()
	s := serve(t, pathfence.Config{Workers: 1, Target: 2 * time.Second})
	client := http.Client{Transport: pathfence.Transport(nil, pathfence.Peers(func(string) bool { return true }))}
	s.mux.HandleFunc("GET /call", func(_ http.ResponseWriter, r *http.Request) {
		call, _ := http.NewRequestWithContext(r.Context(), http.MethodGet, below.URL, nil)
		if response, err := client.Do(call); err == nil {
			response.Body.Close()
		}
	})
	go s.get("/call", "x-pf-deadline", "599999")
	said := <-sent
	if left, err := strconv.Atoi(said); err != nil || left > 2000 {
		t.Errorf("the peer is told %q ms, want 2000 at most", said)
	}
}

// What the server and middleware look for in their own request is there.
func TestTheOuterRequestIsAsWithoutAFence(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	fence, err := pathfence.New(pathfence.Config{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer fence.Close()
	mux := http.NewServeMux()
	files := func() int {
		left, err := os.ReadDir(os.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		return len(left)
	}
	mux.HandleFunc("POST /up/{id}", func(_ http.ResponseWriter, r *http.Request) {
		if err := r.ParseMultipartForm(1); err != nil || files() != 1 {
			t.Errorf("the form gives %v, %d files", err, files())
		}
	})
	pattern := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fence.Handler(mux).ServeHTTP(w, r)
		pattern <- r.Pattern
	}))
	var form bytes.Buffer
	parts := multipart.NewWriter(&form)
	part, err := parts.CreateFormFile("file", "large")
	if err != nil {
		t.Fatal(err)
	}
	part.Write(make([]byte, 12<<20))
	parts.Close()
	response, err := http.Post(server.URL+"/up/7", parts.FormDataContentType(), &form)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if got := <-pattern; got != "POST /up/{id}" {
		t.Errorf("its pattern is %q, want POST /up/{id}", got)
	}
	server.Close() // waits until the connection is done with
	if left := files(); left != 0 {
		t.Errorf("%d files are left, want none", left)
	}
}

// A probe is what has a route of its own. Whoever asks a route that takes all paths for /healthz waits as others do.
func TestACatchAllIsNoProbe(t *testing.T) {
	s := serve(t, pathfence.Config{Workers: 1, Target: 100 * time.Millisecond})
	s.mux.HandleFunc("/", func(http.ResponseWriter, *http.Request) {})
	s.begin("/slow/", 1)
	s.answers("/healthz", http.StatusServiceUnavailable)
}

// A redirect to a path with a slash has a pattern that the client has made up.
func TestARedirectHasNoKey(t *testing.T) {
	s := serve(t, pathfence.Config{Workers: 1})
	s.mux.HandleFunc("/users/{id}/", func(http.ResponseWriter, *http.Request) {})
	for _, method := range []string{"GET", "POST", "CONNECT"} {
		w := httptest.NewRecorder()
		s.Config.Handler.ServeHTTP(w, httptest.NewRequest(method, "/users/made-up", nil))
		if w.Code/100 != 3 {
			t.Errorf("%s gives %d, want a redirect", method, w.Code)
		}
	}
	if classes := s.fence.State().Classes; len(classes) != 0 {
		t.Errorf("redirects are of classes %+v", classes)
	}
}

// One permit is enough for a request that comes to its fence a second time, in whichever way.
func TestAFenceWithinItself(t *testing.T) {
	fence, err := pathfence.New(pathfence.Config{Workers: 1, Target: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer fence.Close()
	for _, off := range []bool{false, true} {
		fence.Off(off)
		inner, outer := http.NewServeMux(), http.NewServeMux()
		inner.HandleFunc("/api/it", func(http.ResponseWriter, *http.Request) {})
		outer.Handle("/api/", fence.Handler(inner))
		w := httptest.NewRecorder()
		fence.Handler(outer).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/it", nil))
		err := fence.Do(t.Context(), pathfence.Request{Key: "a"}, func(ctx context.Context) error {
			return fence.Do(ctx, pathfence.Request{Key: "b"}, func(context.Context) error { return nil })
		})
		if w.Code != http.StatusOK || err != nil {
			t.Errorf("off %v: handlers give %d, Do %v; want 200 and nil", off, w.Code, err)
		}
	}
}

// A handler behind two muxes has the inner one's pattern as its key.
func TestMuxesInEachOther(t *testing.T) {
	s := serve(t, pathfence.Config{Workers: 1, Classes: []pathfence.Class{{Name: "it", Keys: []string{"GET:/api/it/:id"}}}})
	inner := http.NewServeMux()
	inner.HandleFunc("GET /api/it/{id}", func(http.ResponseWriter, *http.Request) {})
	s.mux.Handle("/api/", inner)
	s.answers("/api/it/7", http.StatusOK)
	if it := s.fence.State().Classes[0]; it.Granted != 1 {
		t.Errorf("of its class %d were granted, want 1", it.Granted)
	}
}

func TestOutcomesOfAnswersInParts(t *testing.T) {
	for _, c := range []struct {
		name   string
		does   http.HandlerFunc
		status int
		failed int64
	}{
		{"a copy that fails before its first byte", func(w http.ResponseWriter, _ *http.Request) {
			if _, err := io.Copy(w, io.MultiReader(failing{})); err != nil {
				w.WriteHeader(http.StatusBadGateway)
			}
		}, http.StatusBadGateway, 1},
		{"events that are an error", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("content-type", "text/event-stream")
			w.WriteHeader(http.StatusBadGateway)
		}, http.StatusBadGateway, 1},
		{"a text", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "text") }, http.StatusOK, 0},
		{"a file", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, "doc.go") }, http.StatusOK, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, pathfence.Config{Workers: 1, Target: time.Minute, Classes: []pathfence.Class{{Name: "it", Keys: []string{"GET:/it"}}}})
			s.mux.HandleFunc("GET /it", c.does)
			status, _, _ := s.get("/it")
			s.awaits("its permit is back", func(now pathfence.State) bool { return now.InFlight == 0 })
			if it := s.fence.State().Classes[0]; status != c.status || it.Granted != 1 || it.Failed != c.failed {
				t.Errorf("it gives %d, granted %d, failed %d; want %d, 1, %d", status, it.Granted, it.Failed, c.status, c.failed)
			}
		})
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("it fails") }

// A handler that streams until its client has left hears of that.
func TestFlushFailsWhenTheClientHasLeft(t *testing.T) {
	s := serve(t, pathfence.Config{Workers: 1})
	failed := make(chan error)
	s.mux.HandleFunc("GET /stream", func(w http.ResponseWriter, _ *http.Request) {
		for {
			io.WriteString(w, "part")
			if err := http.NewResponseController(w).Flush(); err != nil {
				failed <- err
				return
			}
		}
	})
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(conn, "GET /stream HTTP/1.1\r\nhost: here\r\n\r\n")
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if err := <-failed; err == nil {
		t.Error("Flush gives no error")
	}
}

// What writers of net/http have is there behind the fence, too.
func TestWhatAWriterHas(t *testing.T) {
	s := serve(t, pathfence.Config{Workers: 1})
	s.mux.HandleFunc("GET /it", func(w http.ResponseWriter, _ *http.Request) {
		if _, is := w.(http.Flusher); !is {
			t.Error("it is no http.Flusher")
		}
		if _, is := w.(http.Hijacker); !is {
			t.Error("it is no http.Hijacker")
		}
		if _, is := w.(io.ReaderFrom); !is {
			t.Error("it is no io.ReaderFrom")
		}
		if _, is := w.(io.StringWriter); !is {
			t.Error("it is no io.StringWriter")
		}
		control := http.NewResponseController(w)
		if err := errors.Join(control.SetReadDeadline(time.Time{}), control.SetWriteDeadline(time.Time{}), control.EnableFullDuplex()); err != nil {
			t.Errorf("its controller gives %v", err)
		}
	})
	s.answers("/it", http.StatusOK)
}

// A peer's refusal counts until it answers.
func TestARefusalThatIsOver(t *testing.T) {
	refuses := true
	below := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if refuses {
			w.Header().Set("x-pf-shed", "late")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		refuses = false
	}))
	defer below.Close()
	s := serve(t, pathfence.Config{Workers: 1, Target: time.Minute})
	client := http.Client{Transport: pathfence.Transport(nil, pathfence.Peers(func(string) bool { return true }))}
	s.mux.HandleFunc("GET /call", func(w http.ResponseWriter, r *http.Request) {
		for range 2 {
			call, _ := http.NewRequestWithContext(r.Context(), http.MethodGet, below.URL, nil)
			if response, err := client.Do(call); err == nil {
				response.Body.Close()
			}
		}
		w.WriteHeader(http.StatusInternalServerError)
	})
	if status, _, header := s.get("/call"); status != http.StatusInternalServerError || header.Get("x-pf-shed") != "" {
		t.Errorf("it gives %d, x-pf-shed %q; want 500 and none", status, header.Get("x-pf-shed"))
	}
}

func TestPauses(t *testing.T) {
	fence, err := pathfence.New(pathfence.Config{Workers: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer fence.Close()
	permit, err := fence.Acquire(t.Context(), pathfence.Request{Key: "a"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		does string
		do   func()
		want int64
	}{
		{"pause", permit.Pause, 0}, {"a pause within it", permit.Pause, 0}, {"the end of that", permit.Resume, 0}, {"the end", permit.Resume, 1},
		{"one more end", permit.Resume, 1}, {"answered", permit.Answered, 0}, {"a pause after it", permit.Pause, 0}, {"working in the pause", permit.Working, 0},
		{"the end of the pause", permit.Resume, 1}, {"idle", permit.Idle, 0}, {"working", permit.Working, 1},
		{"released", func() { permit.Release(pathfence.OK) }, 0}, {"resumed after that", permit.Resume, 0},
	} {
		c.do()
		if got := fence.State().InFlight; got != c.want {
			t.Errorf("%s: %d permits are out, want %d", c.does, got, c.want)
		}
	}
}

func TestNoPermit(t *testing.T) {
	permit := pathfence.PermitOf(context.Background())
	permit.Edge("db")
	permit.Pause()
	permit.Resume()
	permit.Release(pathfence.OK)
	if permit != nil || permit.Class() != "" {
		t.Errorf("without a request there is %v", permit)
	}
}

func TestTimesOfARequest(t *testing.T) {
	cause := errors.New("the budget is used up")
	short, cancel := context.WithTimeoutCause(t.Context(), time.Millisecond, cause)
	defer cancel()
	fence, err := pathfence.New(pathfence.Config{Workers: 1, Target: time.Minute, Classes: []pathfence.Class{{Name: "it", Keys: []string{"it"}}}})
	if err != nil {
		t.Fatal(err)
	}
	defer fence.Close()
	if err := fence.Do(t.Context(), pathfence.Request{Key: "it", Timeout: math.MaxInt64}, func(context.Context) error { return nil }); err != nil {
		t.Errorf("the longest timeout gives %v", err)
	}
	if it := fence.State().Classes[0]; it.Missed != 0 {
		t.Errorf("missed are %d with the longest timeout, want 0", it.Missed)
	}
	if err := fence.Do(short, pathfence.Request{Key: "it"}, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }); err == nil {
		t.Error("what ends by its time gives no error")
	}
	if it := fence.State().Classes[0]; it.Failed != 1 {
		t.Errorf("failed are %d after one that ends by its time, want 1", it.Failed)
	}
	if _, err := fence.Acquire(t.Context(), pathfence.Request{Key: "it"}); err != nil {
		t.Fatal(err)
	}
	if _, err := fence.Acquire(short, pathfence.Request{Key: "it"}); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, cause) {
		t.Errorf("a wait that ends by its time gives %v, want the context's error, and its cause", err)
	}
}

// A key that is not valid is sent to nobody: as a header's value it would break the call.
func TestAKeyThatIsNotValidIsNotSent(t *testing.T) {
	sent := make(chan string, 1)
	below := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { sent <- r.Header.Get("x-pf-path") }))
	defer below.Close()
	s := serve(t, pathfence.Config{Workers: 1}, pathfence.Keys(func(*http.Request) string { return "a\nb" }))
	client := http.Client{Transport: pathfence.Transport(nil, pathfence.Peers(func(string) bool { return true }))}
	s.mux.HandleFunc("GET /call", func(_ http.ResponseWriter, r *http.Request) {
		call := (&http.Request{Method: http.MethodGet, URL: &url.URL{Scheme: "http", Host: strings.TrimPrefix(below.URL, "http://")}}).WithContext(r.Context())
		response, err := client.Transport.RoundTrip(call) // a request without any headers
		if err != nil {
			t.Error(err)
			return
		}
		response.Body.Close()
	})
	s.answers("/call", http.StatusOK)
	select {
	case got := <-sent:
		if got != "" {
			t.Errorf("it is sent %q, want nothing", got)
		}
	default:
		t.Error("the call does not arrive")
	}
}

func TestKeysOfOtherScripts(t *testing.T) {
	if a, b := pathfence.KeyOf("GET /订单/{id}"), pathfence.KeyOf("GET /用户/{id}"); a == b {
		t.Errorf("both have the key %s", a)
	}
}
