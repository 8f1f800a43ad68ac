//go:build pathfence

package main

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/thrift/lib/go/thrift"
	"golang.org/x/sys/unix"

	"temper.dev/temper/pathfence/bench/load"
	"temper.dev/temper/pathfence/bench/stage"
)

func startNode(t *testing.T, arguments ...string) *stage.Process {
	t.Helper()
	return start(t, append([]string{*node}, arguments...)...)
}

// startService starts the service of the language that is tested, and says where each path is asked for: some services have
// a port for each.
func startService(t *testing.T, arguments ...string) (port func(path string) int) {
	t.Helper()
	p := start(t, append(testedService(), arguments...)...)
	return func(path string) int {
		if port, ok := p.Ports["service"]; ok {
			return port
		}
		return p.Ports[path]
	}
}

// testedService is the command line of the service of the language that is tested, before its flags.
func testedService() []string {
	if *jar != "" {
		return service(java, *jar)
	}
	return []string{*node, "service"}
}

func start(t *testing.T, line ...string) *stage.Process {
	t.Helper()
	p, err := stage.Start(line[0], line[1:]...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// In either language a service calls all of a path's downstreams: where the second is not there, the request fails. A store
// does its part of the work, here none of an hour.
func TestSeveralDownstreams(t *testing.T) {
	store := startNode(t, "downstream", "--percent", "0").Ports["downstream"]
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	absent := listener.Addr().(*net.TCPAddr).Port
	listener.Close()
	service := startService(t,
		"--downstream", fmt.Sprintf("whole=%d", store), "--downstream", fmt.Sprintf("whole=%d", store),
		"--downstream", fmt.Sprintf("broken=%d", store), "--downstream", fmt.Sprintf("broken=%d", absent))
	client := load.NewThrift(map[string]int{"whole": service("whole"), "broken": service("broken")})
	defer client.Close()
	deadline := time.Now().Add(stage.Patience)
	if err := client.Ask("whole", time.Hour, deadline); err != nil {
		t.Error(err)
	}
	if err := client.Ask("broken", time.Hour, deadline); err == nil {
		t.Error("it did not miss its second downstream")
	}
}

// In either language, where no classes are configured the fence learns them by what requests call, which the service has to tell it: else both
// paths share a class, of those that call nobody, and one that stands still takes the other along.
func TestLearnedClasses(t *testing.T) {
	frozen, works := startNode(t, "downstream", "--threads", "16"), startNode(t, "downstream")
	service := startService(t, "--workers", "16", "--fence", `{"workers": 16}`,
		"--downstream", fmt.Sprintf("frozen=%d", frozen.Ports["downstream"]),
		"--downstream", fmt.Sprintf("works=%d", works.Ports["downstream"]))
	client := load.NewThrift(map[string]int{"frozen": service("frozen"), "works": service("works")})
	defer client.Close()
	deadline := time.Now().Add(stage.Patience)
	ask := func(path string, times int) {
		for range times {
			if err := client.Ask(path, 10*time.Millisecond, deadline); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
	ask("frozen", 20) // eight are enough to learn
	ask("works", 20)
	if err := frozen.Freeze(); err != nil {
		t.Fatal(err)
	}
	const together = 32
	answered := make(chan error)
	for range together {
		go func() { answered <- client.Ask("frozen", 0, deadline) }()
	}
	ask("works", 50)
	if err := frozen.Thaw(); err != nil {
		t.Fatal(err)
	}
	for range together {
		<-answered // or refused: either will do
	}
}

// What travels with a request goes through four fenced services, two of which are in the language that is tested and two in
// C++: the key, what is left of the client's time, and how often it has been where. Two services have one name each, as if the
// request came back to them.
func TestTravels(t *testing.T) {
	port, called := listen(t)
	for _, s := range []struct {
		name    string
		program []string
	}{{"b", []string{*node, "service"}}, {"a", testedService()}, {"b", []string{*node, "service"}}, {"a", testedService()}} {
		line := append(s.program, "--fence", `{"workers": 16}`, "--onward", "--name", s.name, "--downstream", fmt.Sprintf("path=%d", port))
		port = start(t, line...).Ports["service"]
	}
	const stated = time.Minute
	client := load.NewThriftStating(map[string]int{"path": port}, stated)
	defer client.Close()
	if err := client.Ask("path", 0, time.Now().Add(stage.Patience)); err != nil {
		t.Fatal(err)
	}
	name := <-called
	parts := strings.Split(name, "!")
	if len(parts) != 5 {
		t.Fatalf("%q was called", name)
	}
	left, err := strconv.Atoi(parts[2])
	if err != nil || left <= 0 || int64(left) > stated.Milliseconds() {
		t.Errorf("%q milliseconds are left: %v", parts[2], err)
	}
	if parts[2] = ""; !slices.Equal(parts, []string{"pf", "path", "", "a*2;b*2", "path"}) {
		t.Errorf("%q was called", name)
	}
}

// listen answers one call, and tells which method's it was.
func listen(t *testing.T) (port int, called <-chan string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	names := make(chan string, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return // the test has ended
		}
		framed := thrift.NewTFramedTransportConf(thrift.NewStreamTransportRW(conn), nil)
		p := thrift.NewTBinaryProtocolConf(framed, nil)
		name, _, sequence, err := p.ReadMessageBegin(t.Context())
		err = errors.Join(err, p.Skip(t.Context(), thrift.STRUCT), p.ReadMessageEnd(t.Context()),
			p.WriteMessageBegin(t.Context(), name, thrift.REPLY, sequence), p.WriteStructBegin(t.Context(), "result"),
			p.WriteFieldStop(t.Context()), p.WriteStructEnd(t.Context()), p.WriteMessageEnd(t.Context()), p.Flush(t.Context()))
		if err != nil {
			t.Error(err)
		}
		names <- name
	}()
	return listener.Addr().(*net.TCPAddr).Port, names
}

// Neighbours take CPUs from when they are told to until they are stopped.
func TestNeighbours(t *testing.T) {
	for _, kind := range []string{"spin", "stream"} {
		p := startNode(t, kind)
		used := func() time.Duration {
			c, err := stage.ReadCPU("/proc", []int{p.PID()})
			if err != nil {
				t.Fatal(err)
			}
			return c.Own
		}
		idle := used()
		if err := p.Say("go"); err != nil {
			t.Fatal(err)
		}
		for used() < idle+100*time.Millisecond {
			if ended(t, p) {
				t.Fatalf("%q has ended", kind)
			}
		}
		if err := p.Freeze(); err != nil {
			t.Fatal(err)
		}
	}
}

// ended says whether a process has ended by itself.
func ended(t *testing.T, p *stage.Process) bool {
	t.Helper()
	var info unix.Siginfo
	if err := unix.Waitid(unix.P_PID, p.PID(), &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	return info.Signo != 0
}
