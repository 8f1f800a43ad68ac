package main

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// listen starts a service.
func listen(t *testing.T) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	s := &store{}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go answer(c, s)
		}
	}()
	return socket
}

func TestLatenciesAreOfTheMeasuredPart(t *testing.T) {
	for name, rate := range map[string]float64{"open loop": 500, "closed loop": 0} {
		l := load{socket: listen(t), rate: rate, clients: 2, seed: 1, begin: time.Now().Add(50 * time.Millisecond)}
		l.end = l.begin.Add(200 * time.Millisecond)
		file := filepath.Join(t.TempDir(), "latencies")
		if err := l.run(file); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(l.latencies); n == 0 || info.Size() != int64(8*n) {
			t.Errorf("%s: %d latencies in %d bytes", name, n, info.Size())
		}
		for _, ns := range l.latencies {
			if ns == 0 || ns > uint64(time.Minute) {
				t.Errorf("%s: a latency of %d ns", name, ns)
			}
		}
	}
}

func TestAServiceThatIsGoneIsAnError(t *testing.T) {
	l := load{socket: filepath.Join(t.TempDir(), "nobody"), clients: 1}
	if err := l.run(filepath.Join(t.TempDir(), "latencies")); err == nil {
		t.Error("nobody answered, and nothing was said")
	}
}
