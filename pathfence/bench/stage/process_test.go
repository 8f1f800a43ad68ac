package stage

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func shell(t *testing.T, script string) (*Process, error) {
	t.Helper()
	return Start("/bin/sh", "-c", script)
}

func TestProcess(t *testing.T) {
	heard := filepath.Join(t.TempDir(), "heard")
	p, err := shell(t, "echo listening a=1 b=22; cat >"+heard)
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]int{"a": 1, "b": 22}; !maps.Equal(p.Ports, want) {
		t.Errorf("ports %v, not %v", p.Ports, want)
	}
	if err := p.Say("slow 10"); err != nil {
		t.Error(err)
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(heard); err != nil || string(text) != "slow 10\n" {
		t.Errorf("it heard %q, %v", text, err)
	}
}

// state is a process's letter in /proc.
func state(t *testing.T, pid int) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(text)[strings.LastIndexByte(string(text), ')')+1:])[0]
}

// A process that is frozen stands still, and is thawed before it is stopped.
func TestFreeze(t *testing.T) {
	p, err := shell(t, "echo listening a=1; read line")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Freeze(); err != nil {
		t.Fatal(err)
	}
	for state(t, p.PID()) != "T" {
	}
	if err := p.Thaw(); err != nil {
		t.Fatal(err)
	}
	for state(t, p.PID()) == "T" {
	}
	if err := p.Freeze(); err != nil {
		t.Fatal(err)
	}
	if err := p.Say("end"); err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
}

func TestAProcessThatListensOnNothing(t *testing.T) {
	p, err := shell(t, "echo listening; read line")
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Ports) != 0 {
		t.Errorf("ports %v", p.Ports)
	}
	if err := p.Say("end"); err != nil {
		t.Error(err)
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
}

func TestProcessesThatFail(t *testing.T) {
	for what, script := range map[string]string{"ends": "exit 3", "says something else": "echo hello", "names no number": "echo listening a=b"} {
		if _, err := shell(t, script); err == nil {
			t.Errorf("a program that %s has started", what)
		}
	}
	if _, err := Start("/nonexistent"); err == nil {
		t.Error("a program that does not exist has started")
	}
	p, err := shell(t, "echo listening a=1; read line; exit 3")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(); err == nil {
		t.Error("nobody is told that it failed")
	}
}
