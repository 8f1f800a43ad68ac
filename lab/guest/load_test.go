package main

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// builds has each load generator that a test has built, by its name.
var builds sync.Map

func buildLoad(t *testing.T, name string) string {
	t.Helper()
	build, _ := builds.LoadOrStore(name, sync.OnceValues(func() (string, error) {
		dir, err := os.MkdirTemp("", name)
		if err != nil {
			return "", err
		}
		// Whatever a test has opened, go looks at before it takes an earlier result for this one.
		for _, source := range []string{name + ".c", "ask.h", "clients.h", "load.h"} {
			if _, err := os.ReadFile(filepath.Join("load", source)); err != nil {
				return "", err
			}
		}
		program := filepath.Join(dir, name)
		out, err := exec.Command("gcc", "-O2", "-D_GNU_SOURCE", "-o", program, "load/"+name+".c", "-lm").CombinedOutput()
		if err != nil {
			err = fmt.Errorf("gcc: %w: %s", err, out)
		}
		return program, err
	}))
	program, err := build.(func() (string, error))()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// tries: on a host with much else to do, half a second may pass before a client that is due to run does.
const tries = 10

// askFor has a load generator ask a server for half a second, and returns the latencies, in the order in which requests
// were due, and what the program says. 0: not answered. own are the words beyond those that all have.
func askFor(t *testing.T, name string, server net.Addr, rate int, own ...string) (latencies []time.Duration, said string, err error) {
	t.Helper()
	program := buildLoad(t, name)
	dir := t.TempDir()
	for _, cgroup := range []string{"critical", "background"} {
		if err := os.Mkdir(filepath.Join(dir, cgroup), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, cgroup, "cpu.stat"), []byte("usage_usec 1\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	_, port, err := net.SplitHostPort(server.String())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "latency")
	cmd := exec.CommandContext(t.Context(), program, append([]string{port, fmt.Sprint(rate), "0.1", "0.5", "1", "0", "0", "0", file}, own...)...)
	cmd.Env = append(os.Environ(), "LADDER_CGROUPS="+dir, "LADDER_DIR="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil || rate == 0 {
		return nil, string(out), err
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for ; len(raw) >= 8; raw = raw[8:] {
		latencies = append(latencies, time.Duration(binary.LittleEndian.Uint64(raw)))
	}
	return latencies, string(out), nil
}

// measured asks until the client was let run, and returns how many requests were answered.
func measured(t *testing.T, name string, server net.Addr, own ...string) int {
	t.Helper()
	for range tries {
		latencies, said, err := askFor(t, name, server, 200, own...)
		if err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		answered := 0
		for _, l := range latencies {
			if l > 0 {
				answered++
			}
		}
		if answered > 0 {
			return answered
		}
	}
	return 0
}

// serve has a server answer each connection, until the test ends.
func serve(t *testing.T, answer func(net.Conn)) net.Addr {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				answer(c)
			}()
		}
	}()
	return l.Addr()
}

// trickle writes a text byte by byte, so that a client has to put it together.
func trickle(c net.Conn, text string) {
	for i := range len(text) {
		if _, err := c.Write([]byte(text[i : i+1])); err != nil {
			return
		}
	}
}
