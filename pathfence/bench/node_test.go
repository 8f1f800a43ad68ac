//go:build pathfence

package main

import (
	"fmt"
	"net"
	"testing"
	"time"

	"temper.dev/temper/pathfence/bench/load"
	"temper.dev/temper/pathfence/bench/stage"
)

func startNode(t *testing.T, arguments ...string) *stage.Process {
	t.Helper()
	p, err := stage.Start(*node, arguments...)
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

// A service calls all of a path's downstreams: where the second is not there, the request fails. A store does its part of
// the work, here none of an hour.
func TestSeveralDownstreams(t *testing.T) {
	store := startNode(t, "downstream", "--percent", "0").Ports["downstream"]
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	absent := listener.Addr().(*net.TCPAddr).Port
	listener.Close()
	service := startNode(t, "service",
		"--downstream", fmt.Sprintf("whole=%d", store), "--downstream", fmt.Sprintf("whole=%d", store),
		"--downstream", fmt.Sprintf("broken=%d", store), "--downstream", fmt.Sprintf("broken=%d", absent)).Ports["service"]
	client := load.NewThrift(map[string]int{"whole": service, "broken": service})
	defer client.Close()
	deadline := time.Now().Add(stage.Patience)
	if err := client.Ask("whole", time.Hour, deadline); err != nil {
		t.Error(err)
	}
	if err := client.Ask("broken", time.Hour, deadline); err == nil {
		t.Error("it did not miss its second downstream")
	}
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
		}
		if err := p.Freeze(); err != nil {
			t.Fatal(err)
		}
	}
}
