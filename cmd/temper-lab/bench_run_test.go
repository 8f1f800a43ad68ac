package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"temper.dev/temper/internal/base/exit"
)

func TestBenchRunRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "nginx.yaml")
	text, err := os.ReadFile("../../lab/workloads/nginx.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, message string
		args          []string
	}{
		{"a place that there is not", `cannot measure on "moon"; choose from lab, host`, []string{"--on", "moon"}},
		{"a kernel of a host", "--kernel is about the lab's machines, and this host is not one; leave it out", []string{"--on", "host", "--kernel", "7.0"}},
		{"jobs on a host", "--jobs is about the lab's machines, and this host is not one; leave it out", []string{"--on", "host", "--jobs", "1"}},
		{"no jobs", "jobs must be at least 1, not 0", []string{"--jobs", "0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, status, message := temperBench(t, append([]string{"run", file}, c.args...)...)
			if status != exit.Usage || !strings.Contains(message, c.message) {
				t.Errorf("left with %d, %q; want %d, %q", status, message, exit.Usage, c.message)
			}
		})
	}
}
