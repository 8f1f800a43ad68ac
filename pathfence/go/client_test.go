package pathfence_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	pathfence "temper.dev/temper/pathfence/go"
)

// A service with one worker calls itself, as one that is addressed by its name does.
func TestASelfCallRunsOnItsCallersPermit(t *testing.T) {
	for _, c := range []struct {
		name    string
		host    string
		options []pathfence.TransportOption
	}{
		{"at a loopback address", "127.0.0.1", nil},
		{"at the local host", "LocalHost", nil},
		{"at the address that it listens at", "0.0.0.0", nil},
		{"as a peer", "127.0.0.1", []pathfence.TransportOption{pathfence.Peers(func(string) bool { return true })}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, pathfence.Config{Service: "shop", Workers: 1, Target: time.Minute})
			client := http.Client{Transport: pathfence.Transport(nil, c.options...)}
			s.mux.HandleFunc("GET /nested/{n}", func(w http.ResponseWriter, r *http.Request) {
				next := map[string]string{"3": "/nested/2", "2": "/nested/1", "1": "/fast"}[r.PathValue("n")]
				call, _ := http.NewRequestWithContext(r.Context(), http.MethodGet, strings.Replace(s.URL, "127.0.0.1", c.host, 1)+next, nil)
				response, err := client.Do(call)
				if err != nil {
					t.Error(err)
					return
				}
				defer response.Body.Close()
				w.WriteHeader(response.StatusCode)
				io.Copy(w, response.Body)
			})
			if status, body, _ := s.get("/nested/3"); status != http.StatusOK || body != "fast" {
				t.Errorf("it gives %d %q, want 200 \"fast\"", status, body)
			}
		})
	}
}

// Self-calls without an end are a circle.
func TestACircleEnds(t *testing.T) {
	s := serve(t, pathfence.Config{Workers: 1, Target: time.Minute})
	client := http.Client{Transport: pathfence.Transport(nil)}
	calls := 0
	s.mux.HandleFunc("GET /circle", func(w http.ResponseWriter, r *http.Request) {
		if calls++; calls > 20 {
			return
		}
		call, _ := http.NewRequestWithContext(r.Context(), http.MethodGet, s.URL+"/circle", nil)
		response, err := client.Do(call)
		if err != nil {
			t.Error(err)
			return
		}
		response.Body.Close()
		w.WriteHeader(response.StatusCode)
	})
	if status, _, _ := s.get("/circle"); status != http.StatusServiceUnavailable || calls != 9 {
		t.Errorf("it gives %d after %d calls, want 503 after 9", status, calls)
	}
}

// What travels goes to peers, and to nobody else.
func TestWhatIsSent(t *testing.T) {
	sent := make(chan http.Header, 1)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { sent <- r.Header }))
	defer other.Close()
	abroad := strings.Replace(other.URL, "127.0.0.1", "abroad.invalid", 1)
	// Its name is not to be had here; the connection is to the server above.
	base := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, other.Listener.Addr().String())
	}}
	for _, c := range []struct {
		name, to string
		peer     bool
		want     string // path, visits, and whether a deadline of less than half a minute, and the caller, are said
	}{
		{"a peer", abroad, true, "GET:/call shop*1 true true"},
		{"another host", abroad, false, "  false false"},
		{"a loopback address", other.URL, false, "  false true"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, pathfence.Config{Service: "shop", Workers: 1, Target: time.Minute})
			client := http.Client{Transport: pathfence.Transport(base, pathfence.Peers(func(string) bool { return c.peer }))}
			s.mux.HandleFunc("GET /call", func(_ http.ResponseWriter, r *http.Request) {
				call, _ := http.NewRequestWithContext(r.Context(), http.MethodGet, c.to, nil)
				response, err := client.Do(call)
				if err != nil {
					t.Error(err)
					return
				}
				response.Body.Close()
				if len(call.Header) > 0 {
					t.Errorf("the handler's own request is changed: %v", call.Header)
				}
			})
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			r := httptest.NewRequest(http.MethodGet, "/call", nil).WithContext(ctx)
			r.Header.Set("x-pf-deadline", "60000")
			s.Config.Handler.ServeHTTP(httptest.NewRecorder(), r)
			h := <-sent
			left, _ := strconv.Atoi(h.Get("x-pf-deadline"))
			got := fmt.Sprint(h.Get("x-pf-path"), " ", h.Get("x-pf-visits"), " ", 0 < left && left < 30_000, " ", h.Get("x-pf-within") != "")
			if got != c.want {
				t.Errorf("it is sent %q, want %q", got, c.want)
			}
		})
	}
}

// A peer's refusal is passed on as one, and nobody else's.
func TestARefusalBelowIsPassedOn(t *testing.T) {
	below := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("x-pf-shed", "late")
		if r.URL.Path == "/refuses" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer below.Close()
	for _, c := range []struct {
		name   string
		peer   bool
		path   string
		answer int
		want   string
	}{
		{"a peer's", true, "/refuses", http.StatusBadGateway, "late"},
		{"a peer's, of which the handler makes the best", true, "/refuses", http.StatusOK, ""},
		{"another host's", false, "/refuses", http.StatusBadGateway, ""},
		{"a peer's that answers nevertheless", true, "/answers", http.StatusBadGateway, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, pathfence.Config{Workers: 1, Target: time.Minute})
			client := http.Client{Transport: pathfence.Transport(nil, pathfence.Peers(func(string) bool { return c.peer }))}
			s.mux.HandleFunc("GET /call", func(w http.ResponseWriter, r *http.Request) {
				call, _ := http.NewRequestWithContext(r.Context(), http.MethodGet, below.URL+c.path, nil)
				response, err := client.Do(call)
				if err != nil {
					t.Error(err)
					return
				}
				response.Body.Close()
				w.WriteHeader(c.answer)
			})
			status, _, header := s.get("/call")
			if got := header.Get("x-pf-shed"); status != c.answer || got != c.want {
				t.Errorf("it gives %d, x-pf-shed %q; want %d, %q", status, got, c.answer, c.want)
			}
		})
	}
}

// Paths that call the same are one class, once eight requests of each have said so.
func TestClassesAreLearned(t *testing.T) {
	below := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer below.Close()
	s := serve(t, pathfence.Config{Workers: 8, Target: time.Minute})
	client := http.Client{Transport: pathfence.Transport(nil)}
	for _, path := range []string{"/a/{id}", "/b/{id}"} {
		s.mux.HandleFunc("GET "+path, func(_ http.ResponseWriter, r *http.Request) {
			call, _ := http.NewRequestWithContext(r.Context(), http.MethodGet, below.URL, nil)
			if response, err := client.Do(call); err == nil {
				response.Body.Close()
			}
		})
	}
	for i := range 10 {
		s.answers(fmt.Sprint("/a/", i), http.StatusOK)
		s.answers(fmt.Sprint("/b/", i), http.StatusOK)
	}
	s.awaits("both are one class", func(now pathfence.State) bool {
		for _, c := range now.Classes {
			if strings.HasPrefix(c.Name, "~calls:127.0.0.1:") && c.Granted == 4 {
				return true
			}
		}
		return false
	})
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
