package load

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"
)

// shop is a server that answers as the address says, and counts what it was asked for and by how many connections.
type shop struct {
	*httptest.Server
	mutex       sync.Mutex
	asked       []string
	connections int
}

func openShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{}
	s.Server = httptest.NewUnstartedServer(s)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		if state == http.StateNew {
			s.connections++
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mutex.Lock()
	s.asked = append(s.asked, r.Method+" "+r.URL.String())
	s.mutex.Unlock()
	switch r.URL.Path {
	case "/refused":
		w.Header().Set("x-pf-shed", "late")
		w.WriteHeader(http.StatusServiceUnavailable)
	case "/unavailable":
		w.WriteHeader(http.StatusServiceUnavailable)
	case "/failed":
		w.WriteHeader(http.StatusInternalServerError)
	case "/elsewhere":
		http.Redirect(w, r, "/fine", http.StatusFound)
	case "/closed":
		panic(http.ErrAbortHandler) // no answer
	case "/never":
		<-r.Context().Done()
	default:
		_, _ = w.Write(make([]byte, 64<<10)) // whether the client has it all shows in its connections
	}
}

func (s *shop) counts() (asked []string, connections int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.Clone(s.asked), s.connections
}

func TestHTTPFates(t *testing.T) {
	s := openShop(t)
	client := NewHTTP(map[string]string{"fine": s.URL + "/fine", "refused": s.URL + "/refused", "unavailable": s.URL + "/unavailable",
		"failed": s.URL + "/failed", "elsewhere": s.URL + "/elsewhere", "closed": s.URL + "/closed"})
	defer client.Close()
	for i, c := range []struct {
		path          string
		fate          Fate
		connections   int
		mayNotBeAsked bool
	}{
		{"fine", Answered, 1, false},
		{"fine", Answered, 1, false},
		{"refused", Refused, 1, false},
		{"unavailable", Lost, 1, false},
		{"failed", Lost, 1, false},
		{"elsewhere", Lost, 1, false},
		{"fine", Answered, 1, false},
		{"closed", Lost, 1, false},
		{"fine", Answered, 2, false},
		{"unknown", Lost, 2, true},
	} {
		results, err := Open(t.Context(), time.Now(), []Arrival{{Path: c.path, Work: 1500 * time.Microsecond}}, client, time.Hour)
		if err != nil || results[0].Fate != c.fate {
			t.Errorf("%d, %s: %+v, %v", i, c.path, results, err)
		}
		asked, connections := s.counts()
		if connections != c.connections {
			t.Errorf("%d, %s: %d connections, not %d", i, c.path, connections, c.connections)
		}
		want := "POST /" + c.path + "?work_us=1500"
		if last := asked[len(asked)-1]; (last != want || len(asked) != i+1) && !c.mayNotBeAsked {
			t.Errorf("%d: asked %q as request %d, not %q, once", i, last, len(asked), want)
		}
	}
}

func TestHTTPGivesUp(t *testing.T) {
	s := openShop(t)
	client := NewHTTP(map[string]string{"a": s.URL + "/never"})
	if err := client.Ask("a", 0, time.Now().Add(10*time.Millisecond)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it ended with %v", err)
	}
}
