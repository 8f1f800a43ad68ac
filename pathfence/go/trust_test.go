package pathfence_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
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

// Those who are called would believe a deadline, since they trust this service.
func TestADeadlineOfAStrangerIsNotPassedOn(t *testing.T) {
	sent := make(chan string, 1)
	below := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { sent <- r.Header.Get("x-pf-deadline") }))
	defer below.Close()
	client := http.Client{Transport: pathfence.Transport(nil, pathfence.Peers(func(string) bool { return true }))}
	s := serve(t, pathfence.Config{Workers: 1, Target: 2 * time.Second}, pathfence.Trusted(func(r *http.Request) bool { return r.Header.Get("authorization") == "peer" }))
	s.mux.HandleFunc("GET /call", func(_ http.ResponseWriter, r *http.Request) {
		call, _ := http.NewRequestWithContext(r.Context(), http.MethodGet, below.URL, nil)
		if response, err := client.Do(call); err == nil {
			response.Body.Close()
		}
	})
	for _, c := range []struct {
		name, deadline, who string
		passed              bool
	}{
		{"long", "599999", "", false},
		{"short", "1500", "", false},
		{"of a peer", "1500", "peer", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			go s.get("/call", "x-pf-deadline", c.deadline, "authorization", c.who)
			said := <-sent
			left, err := strconv.Atoi(said)
			if c.passed && (err != nil || left > 1500) || !c.passed && said != "" {
				t.Errorf("the peer is told %q ms, want that %v", said, c.passed)
			}
		})
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
