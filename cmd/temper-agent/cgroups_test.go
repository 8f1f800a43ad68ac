package main

import (
	"slices"
	"strings"
	"testing"
)

func TestCgroups(t *testing.T) {
	var c cgroups
	for _, text := range []string{"/runtime.slice", "/podruntime/kubelet"} {
		if err := c.Set(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	if want := []string{"/runtime.slice", "/podruntime/kubelet"}; !slices.Equal(c, want) {
		t.Errorf("%q, want %q", c, want)
	}
	for text, want := range map[string]string{
		"":                             "is relative",
		"runtime.slice":                "is relative",
		"/":                            "the root cannot have a tier",
		"/a/../b":                      ".. is not allowed",
		"/sys/fs/cgroup/runtime.slice": "leave /sys/fs/cgroup out",
	} {
		if err := new(cgroups).Set(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
