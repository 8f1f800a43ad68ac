package host

import (
	"testing"
	"time"
)

func TestAgo(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s ago", 90 * time.Second: "90s ago", time.Hour: "60m ago",
		-900 * time.Millisecond: "0s ago", -10 * time.Minute: "10m ahead of this clock",
	} {
		if got := Ago(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}
