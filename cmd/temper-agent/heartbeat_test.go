package main

import (
	"testing"
	"time"
)

func TestHeartbeat(t *testing.T) {
	for text, want := range map[string]time.Duration{"0": 0, "2s": 2 * time.Second, "1m": time.Minute, "1h": time.Hour} {
		if h := new(heartbeat); h.Set(text) != nil || *h != heartbeat(want) {
			t.Errorf("%s: %s", text, h)
		}
	}
	for _, text := range []string{"", "60", "1s", "61m", "2500ms", "-2s", "soon"} {
		if h := new(heartbeat); h.Set(text) == nil {
			t.Errorf("%s is taken as %s", text, h)
		}
	}
}
