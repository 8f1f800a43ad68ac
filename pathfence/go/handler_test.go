package pathfence_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pathfence "temper.dev/temper/pathfence/go"
	"temper.dev/temper/pathfence/go/internal/fencetest"
)

// service is a server behind a fence.
type service struct {
	t     *testing.T
	fence *pathfence.Fence
	mux   *http.ServeMux
	*httptest.Server
	gate chan struct{} // what /slow/{id} waits for; closed at the end
}

// serve starts a service with a path that can be answered at once, and one that waits for the gate.
func serve(t *testing.T, config pathfence.Config, options ...pathfence.HandlerOption) *service {
	fence, err := pathfence.New(config)
	if err != nil {
		t.Fatal(err)
	}
	s := &service{t: t, fence: fence, mux: http.NewServeMux(), gate: make(chan struct{})}
	s.Server = httptest.NewServer(fence.Handler(s.mux, options...))
	s.mux.HandleFunc("GET /fast", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "fast") })
	s.mux.HandleFunc("GET /slow/{id}", func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-s.gate:
		case <-r.Context().Done():
		}
	})
	t.Cleanup(func() {
		close(s.gate)
		s.CloseClientConnections()
		s.Close()
		s.awaits("all permits are back", func(now pathfence.State) bool { return now.InFlight == 0 && now.Waiting == 0 })
		fence.Close()
	})
	return s
}

func (s *service) awaits(what string, holds func(pathfence.State) bool) {
	s.t.Helper()
	fencetest.Awaits(s.t, s.fence, what, holds)
}

// get gives status and body, or what went wrong.
func (s *service) get(path string, headers ...string) (status int, body string, header http.Header) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.URL+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := s.Client().Do(r)
	if err != nil {
		return 0, err.Error(), nil
	}
	defer response.Body.Close()
	all, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error(), nil
	}
	return response.StatusCode, string(all), response.Header
}

// begin sends so many requests that are not answered yet, and waits until they are in the service.
func (s *service) begin(path string, n int) {
	s.t.Helper()
	before := s.fence.State()
	for i := range n {
		go func() {
			response, err := s.Client().Get(fmt.Sprintf("%s%s%d", s.URL, path, i))
			if err == nil {
				response.Body.Close()
			}
		}()
	}
	s.awaits("they are in the service", func(now pathfence.State) bool {
		return now.InFlight+now.Waiting == before.InFlight+before.Waiting+int64(n)
	})
}

func (s *service) answers(path string, want int) {
	s.t.Helper()
	if status, body, _ := s.get(path); status != want {
		s.t.Errorf("%s gives %d (%s), want %d", path, status, body, want)
	}
}

var named = pathfence.Config{Service: "shop", Workers: 4, Target: time.Minute, Classes: []pathfence.Class{
	{Name: "slow", Keys: []string{"GET:/slow/:id"}},
	{Name: "fast", Keys: []string{"GET:/fast"}},
}}

func TestASlowPathLeavesWorkersToOthers(t *testing.T) {
	s := serve(t, named)
	s.answers("/fast", http.StatusOK)
	s.begin("/slow/", 20)
	for range 20 {
		s.answers("/fast", http.StatusOK)
	}
	if now := s.fence.State(); now.InFlight > 3 || now.Waiting < 17 {
		t.Errorf("in flight are %d of 4, and %d wait; want 3 at most, and 17 at least", now.InFlight, now.Waiting)
	}
}

// Where all clients leave what hangs, nothing else shows it.
func TestAClientThatWaitedInVainIsCounted(t *testing.T) {
	s := serve(t, pathfence.Config{Workers: 4, Target: 10 * time.Millisecond, Classes: named.Classes})
	s.begin("/slow/", 1)
	time.Sleep(20 * time.Millisecond) // a deadline is what it has to miss
	s.CloseClientConnections()
	s.awaits("the client has left, and was missed", func(now pathfence.State) bool { return now.InFlight == 0 && now.Classes[0].Missed == 1 })
}

// Beside workers that are all taken, what takes none is answered.
func TestAnsweredWithoutAWorker(t *testing.T) {
	for _, c := range []struct {
		name, path string
		status     int
	}{
		{"liveness", "/livez", http.StatusOK},
		{"readiness", "/readyz", http.StatusOK},
		{"health", "/healthz", http.StatusOK},
		{"a path that is not routed", "/nothing", http.StatusNotFound},
		{"a path that the service exempts", "/status", http.StatusOK},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, pathfence.Config{Workers: 1, Target: time.Minute}, pathfence.Exempt(func(r *http.Request) bool { return r.URL.Path == "/status" }))
			for _, path := range []string{"/livez", "/readyz", "/healthz", "/status"} {
				s.mux.HandleFunc("GET "+path, func(http.ResponseWriter, *http.Request) {})
			}
			s.begin("/slow/", 2)
			s.answers(c.path, c.status)
		})
	}
}

// Responses that last hold no worker: with one, a hundred clients have theirs, and others are answered.
func TestResponsesThatLast(t *testing.T) {
	const clients = 100
	for _, c := range []struct {
		name, path string
	}{
		{"server-sent events", "/events"},
		{"a WebSocket", "/socket"},
		{"long polling", "/poll"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, pathfence.Config{Workers: 1, Target: time.Minute})
			open := make(chan struct{}, clients)
			wait := func(ctx context.Context) {
				open <- struct{}{}
				select {
				case <-s.gate:
				case <-ctx.Done():
				}
			}
			s.mux.HandleFunc("GET /events", func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("content-type", "text/event-stream; charset=utf-8")
				w.WriteHeader(http.StatusOK)
				w.(http.Flusher).Flush()
				wait(r.Context())
			})
			s.mux.HandleFunc("GET /socket", func(w http.ResponseWriter, r *http.Request) {
				conn, buffer, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				buffer.WriteString("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\n\r\n")
				buffer.Flush()
				wait(r.Context())
			})
			s.mux.HandleFunc("GET /poll", func(_ http.ResponseWriter, r *http.Request) {
				permit := pathfence.PermitOf(r.Context())
				permit.Pause()
				wait(r.Context())
				permit.Resume()
			})
			for range clients {
				conn, err := net.Dial("tcp", s.Listener.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nhost: here\r\n\r\n", c.path)
				if c.path != "/poll" {
					line, err := bufio.NewReader(conn).ReadString('\n')
					if err != nil || strings.Contains(line, "503") {
						t.Fatalf("a client gets %q, %v", line, err)
					}
				}
			}
			for range clients {
				<-open
			}
			s.answers("/fast", http.StatusOK)
		})
	}
}

// zeros has no end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// Clients that send or read slowly hold no worker: with one, fifty of them wait, and others are answered.
func TestSlowClients(t *testing.T) {
	const clients, size = 50, 16 << 20
	for _, c := range []struct{ name, sends string }{
		{"that do not read what is written", "GET /written HTTP/1.1\r\nhost: here\r\n\r\n"},
		{"that do not read what is copied", "GET /copied HTTP/1.1\r\nhost: here\r\n\r\n"},
		{"that do not read a file", "GET /file HTTP/1.1\r\nhost: here\r\n\r\n"},
		{"that do not send their body", "POST /upload HTTP/1.1\r\nhost: here\r\ncontent-length: 1000\r\n\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, pathfence.Config{Workers: 1, Target: time.Minute})
			file := t.TempDir() + "/large"
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(file, size); err != nil {
				t.Fatal(err)
			}
			began := make(chan struct{}, clients)
			s.mux.HandleFunc("GET /written", func(w http.ResponseWriter, _ *http.Request) {
				began <- struct{}{}
				w.Write(make([]byte, size))
			})
			s.mux.HandleFunc("GET /copied", func(w http.ResponseWriter, _ *http.Request) {
				began <- struct{}{}
				io.Copy(w, io.LimitReader(zeros{}, size))
			})
			s.mux.HandleFunc("GET /file", func(w http.ResponseWriter, r *http.Request) {
				began <- struct{}{}
				http.ServeFile(w, r, file)
			})
			s.mux.HandleFunc("POST /upload", func(_ http.ResponseWriter, r *http.Request) {
				began <- struct{}{}
				io.Copy(io.Discard, r.Body)
			})
			for range clients {
				conn, err := net.Dial("tcp", s.Listener.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				io.WriteString(conn, c.sends)
			}
			for range clients {
				<-began
			}
			s.awaits("none has a permit", func(now pathfence.State) bool { return now.InFlight == 0 })
			s.answers("/fast", http.StatusOK)
		})
	}
}

// Nor do clients that send a little each time, before their time is up: all of it counts.
func TestClientsThatSendBitByBit(t *testing.T) {
	const clients = 12
	s := serve(t, pathfence.Config{Workers: 1, Target: time.Minute})
	began := make(chan struct{}, clients)
	s.mux.HandleFunc("POST /upload", func(_ http.ResponseWriter, r *http.Request) {
		began <- struct{}{}
		io.Copy(io.Discard, r.Body)
	})
	for range clients {
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		io.WriteString(conn, "POST /upload HTTP/1.1\r\nhost: here\r\ncontent-length: 1000000\r\n\r\n")
		go func() {
			for {
				if _, err := conn.Write([]byte("x")); err != nil {
					return // the test has ended
				}
				time.Sleep(5 * time.Millisecond) // that is how it sends
			}
		}()
	}
	for range clients {
		<-began
	}
	s.answers("/fast", http.StatusOK)
}

// upload sends the headers of a request with a body of four bytes.
func (s *service) upload() net.Conn {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	io.WriteString(conn, "POST /upload HTTP/1.1\r\nhost: here\r\ncontent-length: 4\r\n\r\n")
	return conn
}

// What a body that came late is for is yet to be done: it takes nothing from others, whatever hangs.
func TestALateBodyWaitsForItsTurn(t *testing.T) {
	const clients = 20
	var uploads atomic.Int64 // of which OnDecision is told
	s := serve(t, pathfence.Config{Workers: 4, Target: time.Minute, OnDecision: func(d pathfence.Decision) {
		if d.Class == "upload" && d.Outcome == pathfence.Granted {
			uploads.Add(1)
		}
	}, Classes: []pathfence.Class{
		{Name: "upload", Keys: []string{"POST:/upload"}}, {Name: "fast", Keys: []string{"GET:/fast"}},
	}})
	s.mux.HandleFunc("POST /upload", func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		<-s.gate
	})
	s.answers("/fast", http.StatusOK)
	var conns []net.Conn
	for range clients {
		conns = append(conns, s.upload())
	}
	s.awaits("all wait for their bodies", func(now pathfence.State) bool { return now.Classes[0].Granted == clients && now.InFlight == 0 })
	for _, conn := range conns {
		io.WriteString(conn, "body")
	}
	s.awaits("all have their bodies", func(now pathfence.State) bool { return now.InFlight+now.Waiting == clients })
	if now := s.fence.State(); now.InFlight > 3 {
		t.Errorf("%d of 4 are in flight, want 3 at most", now.InFlight)
	}
	if got := uploads.Load(); got != clients {
		t.Errorf("OnDecision is told of %d uploads that are granted, want %d: each once", got, clients)
	}
	for range clients {
		s.answers("/fast", http.StatusOK)
	}
}

// It may be refused then, and that is what its client is told, whatever the handler makes of it.
func TestALateBodyMayBeRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer func(http.ResponseWriter)
	}{
		{"as the client's fault", func(w http.ResponseWriter) { http.Error(w, "no body", http.StatusBadRequest) }},
		{"by nothing", func(http.ResponseWriter) {}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, pathfence.Config{Workers: 1, Target: 100 * time.Millisecond})
			s.mux.HandleFunc("POST /upload", func(w http.ResponseWriter, r *http.Request) {
				if _, err := io.ReadAll(r.Body); err != nil {
					c.answer(w)
				}
			})
			conn := s.upload()
			s.awaits("it waits for its body", func(now pathfence.State) bool { return len(now.Classes) > 0 && now.InFlight == 0 })
			s.begin("/slow/", 1)
			io.WriteString(conn, "body")
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			if shed := response.Header.Get("x-pf-shed"); response.StatusCode != http.StatusServiceUnavailable || shed == "" {
				t.Errorf("it is answered with %d, and refused as %q; want 503, and a reason", response.StatusCode, shed)
			}
		})
	}
}

// A handler may ask whether its client has gone as frameworks do.
func TestAHandlerIsToldThatItsClientHasGone(t *testing.T) {
	s := serve(t, pathfence.Config{Workers: 1, Target: time.Minute})
	gone := make(chan struct{})
	s.mux.HandleFunc("GET /stream", func(w http.ResponseWriter, _ *http.Request) {
		w.(http.Flusher).Flush()
		<-w.(http.CloseNotifier).CloseNotify() //nolint:staticcheck
		close(gone)
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
	<-gone
}

// What is left to do once a client has read slowly does not make the path look quick.
func TestASlowReaderTeachesNothing(t *testing.T) {
	const works = 20 * time.Millisecond
	s := serve(t, pathfence.Config{Workers: 1, Target: time.Minute, Classes: []pathfence.Class{{Name: "it", Keys: []string{"GET:/it"}}}})
	s.mux.HandleFunc("GET /it", func(w http.ResponseWriter, _ *http.Request) {
		<-time.After(works)
		w.Write(make([]byte, 16<<20))
	})
	for range 5 {
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(conn, "GET /it HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n")
		if _, err := conn.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		s.awaits("it waits for its client", func(now pathfence.State) bool { return now.InFlight == 0 })
		io.Copy(io.Discard, conn)
		conn.Close()
	}
	if it := s.fence.State().Classes[0]; it.Hold < int64(works) {
		t.Errorf("one takes %v, want %v at least", time.Duration(it.Hold), works)
	}
}

// What has waited for its client has its permit again.
func TestASlowClientIsWorkedFor(t *testing.T) {
	s := serve(t, pathfence.Config{Workers: 1, Target: time.Minute})
	read := make(chan struct{})
	s.mux.HandleFunc("POST /upload", func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		close(read)
		<-s.gate
	})
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, "POST /upload HTTP/1.1\r\nhost: here\r\ncontent-length: 4\r\n\r\n")
	s.awaits("it waits without a permit", func(now pathfence.State) bool {
		return now.InFlight == 0 && len(now.Classes) > 0 && now.Classes[0].Granted > 0
	})
	io.WriteString(conn, "body")
	<-read
	if now := s.fence.State(); now.InFlight != 1 {
		t.Errorf("%d permits are out while it is worked for, want 1", now.InFlight)
	}
}

func TestRefusals(t *testing.T) {
	s := serve(t, pathfence.Config{Service: "shop", Workers: 1, Target: time.Minute},
		pathfence.Trusted(func(r *http.Request) bool { return r.Header.Get("authorization") == "peer" }),
		pathfence.RefuseWith(func(w http.ResponseWriter, _ *http.Request, reason string) {
			w.WriteHeader(http.StatusTooManyRequests)
			io.WriteString(w, "refused: "+reason)
		}))
	s.begin("/slow/", 1)
	for _, c := range []struct {
		name    string
		headers []string
		reason  string
	}{
		{"its time is over", []string{"x-pf-deadline", "1"}, "expired"},
		{"a chain that was here nine times", []string{"authorization", "peer", "x-pf-visits", "shop*9"}, "depth"},
		{"a client without trust is believed no depth", []string{"x-pf-visits", "shop*9", "x-pf-deadline", "1"}, "expired"},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, body, header := s.get("/fast", c.headers...)
			if status != http.StatusTooManyRequests || body != "refused: "+c.reason || header.Get("x-pf-shed") != c.reason {
				t.Errorf("it gives %d %q %v, want 429 %q", status, body, header, "refused: "+c.reason)
			}
			if retry := header.Get("retry-after"); retry != "1" && retry != "2" { // the class has nothing that would take longer
				t.Errorf("retry-after is %q, want 1 or 2", retry)
			}
		})
	}
	waits := make(chan string)
	go func() {
		_, body, _ := s.get("/fast")
		waits <- body
	}()
	s.awaits("one waits", func(now pathfence.State) bool { return now.Waiting == 1 })
	s.fence.Close()
	if body := <-waits; body != "refused: closed" {
		t.Errorf("what waits when the fence is closed gets %q, want closed", body)
	}
	if _, body, _ := s.get("/fast"); body != "refused: closed" {
		t.Errorf("closed, it gives %q", body)
	}
}

// Who is not trusted may ask for less time than the target, and not for more.
func TestADeadlineOfAClientWithoutTrust(t *testing.T) {
	s := serve(t, pathfence.Config{Workers: 1, Target: 50 * time.Millisecond})
	s.begin("/slow/", 1)
	if status, _, header := s.get("/fast", "x-pf-deadline", "600000"); status != http.StatusServiceUnavailable || header.Get("x-pf-shed") != "expired" {
		t.Errorf("it gives %d, %v; want 503, expired", status, header)
	}
}

// The time that middleware leaves counts, too; what it answers is a refusal.
func TestAContextsDeadlineCounts(t *testing.T) {
	s := serve(t, pathfence.Config{Workers: 1, Target: time.Minute})
	s.begin("/slow/", 1)
	short := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), time.Millisecond)
		defer cancel()
		s.Config.Handler.ServeHTTP(w, r.WithContext(ctx))
	})
	w := httptest.NewRecorder()
	short.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/fast", nil))
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("x-pf-shed") != "expired" {
		t.Errorf("it gives %d %v, want 503, expired", w.Code, w.Header())
	}
}

func TestAClientThatGoesAwayIsWithdrawn(t *testing.T) {
	s := serve(t, pathfence.Config{Workers: 1, Target: time.Minute})
	s.begin("/slow/", 1)
	ctx, cancel := context.WithCancel(t.Context())
	var gone sync.WaitGroup
	for range 5 {
		gone.Add(1)
		go func() {
			defer gone.Done()
			r, _ := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/fast", nil)
			if response, err := s.Client().Do(r); err == nil {
				t.Errorf("it is answered: %d", response.StatusCode)
				response.Body.Close()
			}
		}()
	}
	s.awaits("5 wait", func(now pathfence.State) bool { return now.Waiting == 5 })
	cancel()
	gone.Wait()
	s.awaits("none waits", func(now pathfence.State) bool { return now.Waiting == 0 && now.InFlight == 1 })
}

// However a handler ends, its permit comes back, and counts as what it was.
func TestOutcomes(t *testing.T) {
	for _, c := range []struct {
		name   string
		does   func(http.ResponseWriter)
		failed int64
	}{
		{"success", func(w http.ResponseWriter) { io.WriteString(w, "done") }, 0},
		{"nothing written", func(http.ResponseWriter) {}, 0},
		{"not found", func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) }, 0},
		{"early hints, then an error", func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusBadGateway)
		}, 1},
		{"an error", func(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) }, 1},
		{"an error by a response controller", func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusInternalServerError)
			http.NewResponseController(w).Flush()
		}, 1},
		{"a panic", func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, pathfence.Config{Workers: 1, Target: time.Minute, Classes: []pathfence.Class{{Name: "it", Keys: []string{"GET:/it"}}}})
			s.mux.HandleFunc("GET /it", func(w http.ResponseWriter, _ *http.Request) { c.does(w) })
			s.get("/it")
			s.awaits("its permit is back", func(now pathfence.State) bool {
				return now.InFlight == 0 && len(now.Classes) == 1 && now.Classes[0].Granted == 1
			})
			if got := s.fence.State().Classes[0].Failed; got != c.failed {
				t.Errorf("failed are %d, want %d", got, c.failed)
			}
		})
	}
}

func TestKeys(t *testing.T) {
	for _, c := range []struct{ pattern, method, path, want string }{
		{"GET /orders/{id}", "GET", "/orders/7", "GET:/orders/:id"},
		{"GET /orders/{id}", "HEAD", "/orders/7", "GET:/orders/:id"},
		{"/any", "POST", "/any", "POST:/any"},
		{"/any", "BREW", "/any", "ANY:/any"},
		{"/files/{path...}", "GET", "/files/a/b", "GET:/files/:path..."},
		{"/{$}", "GET", "/", "GET:/:"},
		{"GET example.com/x", "GET", "http://example.com/x", "GET:example.com/x"},
		{"GET /" + strings.Repeat("a", 80), "GET", "/" + strings.Repeat("a", 80), "GET:/" + strings.Repeat("a", 50) + "~6ffe11f8"},
	} {
		t.Run(c.method+" "+c.pattern, func(t *testing.T) {
			fence, err := pathfence.New(pathfence.Config{Workers: 1, Target: time.Minute, Classes: []pathfence.Class{{Name: "it", Keys: []string{c.want}}}})
			if err != nil {
				t.Fatal(err)
			}
			defer fence.Close()
			mux, class := http.NewServeMux(), "none"
			mux.HandleFunc(c.pattern, func(_ http.ResponseWriter, r *http.Request) { class = pathfence.PermitOf(r.Context()).Class() })
			fence.Handler(mux).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(c.method, c.path, nil))
			if class != "it" {
				t.Errorf("the request is of class %s; its key is not %s", class, c.want)
			}
		})
	}
}

func TestAHandlerWithoutPatternsIsRefusedAtOnce(t *testing.T) {
	fence, err := pathfence.New(pathfence.Config{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer fence.Close()
	defer func() {
		if said := fmt.Sprint(recover()); !strings.Contains(said, "give Handler the option Keys") {
			t.Errorf("it says %q", said)
		}
	}()
	fence.Handler(http.NotFoundHandler())
}

func TestStateHandler(t *testing.T) {
	s := serve(t, named)
	pages := httptest.NewServer(s.fence.StateHandler())
	defer pages.Close()
	for _, c := range []struct {
		name, method, kind, body string
		status                   int
		off                      bool
	}{
		{"a look", "GET", "", "", http.StatusOK, false},
		{"off", "POST", "application/json", `{"off": true}`, http.StatusOK, true},
		{"not said", "POST", "application/json", `{}`, http.StatusBadRequest, true},
		{"what a foreign web page can send", "POST", "text/plain", `{"off": false}`, http.StatusUnsupportedMediaType, true},
		{"on", "POST", "application/json", `{"off": false}`, http.StatusOK, false},
		{"another method", "DELETE", "", "", http.StatusMethodNotAllowed, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, _ := http.NewRequest(c.method, pages.URL, strings.NewReader(c.body))
			r.Header.Set("content-type", c.kind)
			response, err := pages.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if off := s.fence.State().Off; response.StatusCode != c.status || off != c.off {
				t.Errorf("it gives %d, off %v; want %d, %v", response.StatusCode, off, c.status, c.off)
			}
		})
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

func TestKeysOfOtherScripts(t *testing.T) {
	if a, b := pathfence.KeyOf("GET /订单/{id}"), pathfence.KeyOf("GET /用户/{id}"); a == b {
		t.Errorf("both have the key %s", a)
	}
}
