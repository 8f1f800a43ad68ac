package fencetop

import (
	"bytes"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"temper.dev/temper/internal/base/fixture"
)

// What the C++ and the Java side say of one state; their tests hold them to it.
const example = "../../../pathfence/spec/state/state.json"

func said(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// serve answers at a Unix socket, as the C++ side does.
func serve(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "socket")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte(text))
			conn.Close()
		}
	}()
	return path
}

func TestReadAsksSocketsAndEndpoints(t *testing.T) {
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(said(t))) }))
	defer endpoint.Close()
	for _, target := range []string{serve(t, said(t)), endpoint.URL + "/actuator/pathfence"} {
		s, err := Read(t.Context(), target)
		if err != nil {
			t.Fatal(err)
		}
		if s.Workers != 16 || s.Waiting != 3 || s.WatchError == nil || len(s.Classes) != 2 {
			t.Errorf("%s: %+v", target, s)
		}
		if want := (Class{Name: "orders", Limit: 10, Reserve: 8, InFlight: 10, Queued: 3, Lent: 2, Granted: 5210, Shed: 17, Missed: 2, Failed: 1, Knee: 9, Hold: 1250000, Reason: "knee", Keys: []string{"GET:/orders/:id", "POST:/orders"}}); !reflect.DeepEqual(s.Classes[0], want) {
			t.Errorf("%s: %+v", target, s.Classes[0])
		}
	}
}

func TestReadSaysWhatIsWrong(t *testing.T) {
	endpoint := httptest.NewServer(http.NotFoundHandler())
	defer endpoint.Close()
	for what, c := range map[string]struct{ target, want string }{
		"nobody":            {filepath.Join(t.TempDir(), "none"), "no such file"},
		"no endpoint":       {endpoint.URL, "404"},
		"no JSON":           {serve(t, "hello"), "not the state of a fence"},
		"other JSON":        {serve(t, `{"status":"UP"}`), "not the state of a fence"},
		"half of an answer": {serve(t, said(t)[:100]), "not the state of a fence"},
	} {
		if _, err := Read(t.Context(), c.target); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", what, err, c.want)
		}
	}
	for target, good := range map[string]bool{"/run/s": true, "./s": true, "http://h:1/p": true, "https://h": true, "h:8080": false, "ftp://h": false, "http://": false, "": false} {
		if err := Check(target); (err == nil) != good {
			t.Errorf("%q: %v", target, err)
		}
	}
}

func look(s State, at time.Duration) Look {
	return Look{Target: "/run/orders/pathfence.sock", Time: time.Unix(0, 0).Add(at), State: &s}
}

func TestCompare(t *testing.T) {
	at := func(target string, when time.Duration, classes ...Class) Look {
		return Look{Target: target, Time: time.Unix(0, 0).Add(when), State: &State{Classes: classes}}
	}
	before := []Look{at("stays", 0, Class{Name: "a", Granted: 100, Shed: 10}, Class{Name: "b", Granted: 50}), {Target: "comes"}, at("goes", 0)}
	now := []Look{at("new", 2*time.Second), at("stays", 2*time.Second, Class{Name: "b", Granted: 8}, Class{Name: "a", Granted: 110, Shed: 10, Missed: 1}, Class{Name: "c", Failed: 3}),
		at("comes", 2*time.Second), {Target: "goes"}}
	Compare(before, now)
	// b's service was started again: its 8 are since then.
	if want := []Change{{"b", 4, 0, 0, 0}, {"a", 5, 0, 0.5, 0}, {"c", 0, 0, 0, 1.5}}; !reflect.DeepEqual(now[1].Changes, want) {
		t.Errorf("%+v, want %+v", now[1].Changes, want)
	}
	for _, l := range []Look{now[0], now[2], now[3]} {
		if l.Changes != nil {
			t.Errorf("there is nothing to compare %s with: %+v", l.Target, l.Changes)
		}
	}
}

func TestTables(t *testing.T) {
	socket := serve(t, said(t))
	s, err := Read(t.Context(), socket)
	if err != nil {
		t.Fatal(err)
	}
	now := look(*s, time.Second)
	off := look(State{Off: true, Workers: 4}, 0)
	gone := Look{Target: "http://cart/actuator/pathfence", Error: "connection refused"}
	var counts, rates bytes.Buffer
	Write(&counts, []Look{now, gone, off})
	fixture.Golden(t, "counts.txt", counts.String())
	earlier := *s
	earlier.Classes = []Class{{Name: "orders", Granted: 5000}, {Name: "~un", Granted: 4}}
	round := []Look{now}
	Compare([]Look{look(earlier, 0)}, round)
	Write(&rates, round)
	fixture.Golden(t, "rates.txt", rates.String())
}

func TestServicesWriteNoLines(t *testing.T) {
	wrong := "a\n\x1b[2J"
	for what, l := range map[string]Look{
		"a class":       look(State{Workers: 1, Classes: []Class{{Name: wrong}}}, 0),
		"a path":        look(State{Workers: 1, Classes: []Class{{Name: "~calls:a", Keys: []string{wrong}}}}, 0),
		"a reason":      look(State{Workers: 1, Classes: []Class{{Name: "a", Reason: wrong}}}, 0),
		"configuration": look(State{Workers: 1, WatchError: &wrong}, 0),
		"an error":      {Target: "a", Error: wrong},
	} {
		t.Run(what, func(t *testing.T) {
			var out bytes.Buffer
			Write(&out, []Look{l})
			if strings.Contains(out.String(), "\x1b") || !strings.Contains(out.String(), `\n\x1b[2J"`) {
				t.Errorf("%q", out.String())
			}
			if err := unasked([]Look{l}); err != nil && strings.Contains(err.Error(), "\x1b") {
				t.Errorf("%q", err)
			}
		})
	}
}

func TestHoldsAreShort(t *testing.T) {
	for ns, want := range map[int64]string{900: "900ns", 12_345: "12.35µs", 1_250_000: "1.25ms", 123_456_789: "123.46ms", 2_500_000_000: "2.5s", 120_400_000_000: "2m0.4s"} {
		if got := hold(ns); got != want {
			t.Errorf("%d: %s, not %s", ns, got, want)
		}
	}
}

func TestClassesAreNamed(t *testing.T) {
	for _, c := range []struct {
		name string
		keys []string
		want string
	}{
		{"orders", []string{"GET:/orders/:id", "POST:/orders"}, "orders"},
		{"~calls:db", []string{"GET:/a"}, "~calls:db GET:/a"},
		{"~key:GET:/a", []string{"GET:/a"}, "~key:GET:/a"},
		{"~u0", []string{"GET:/a", "GET:/b", "GET:/c"}, "~u0 GET:/a, 2 more"},
		{"~u1", nil, "~u1"},
	} {
		t.Run(c.want, func(t *testing.T) {
			if got := named(Class{Name: c.name, Keys: c.keys}); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
