package main

import (
	"testing"

	"temper.dev/temper/internal/base/exit"
)

func TestFilesOfAGuest(t *testing.T) {
	for pair, want := range map[string]string{
		"/etc/temper.yaml=node.yaml": "",
		"/tmp/x=x":                   "",
		"etc/x=x":                    `"etc/x=x" is no pair of paths; write --file /path/in/guest=path/on/host`,
		"/etc/x":                     `"/etc/x" is no pair of paths; write --file /path/in/guest=path/on/host`,
		"/proc/x=x":                  "/proc/x would not be seen: the kernel's files are mounted on /proc; choose another folder",
		"//sys/x=x":                  "//sys/x would not be seen: the kernel's files are mounted on /sys; choose another folder",
	} {
		_, err := parseFiles([]string{pair})
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != want || err != nil && exit.StatusOf(err) != exit.Usage {
			t.Errorf("%s: %q, status %d; want %q", pair, got, exit.StatusOf(err), want)
		}
	}
}
