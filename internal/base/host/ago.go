package host

import (
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// Ago says how long ago something was, by two clocks that may differ: that of who wrote it, and that of who reads.
func Ago(d time.Duration) string {
	if d <= -time.Second {
		return duration.HumanDuration(-d) + " ahead of this clock"
	}
	return duration.HumanDuration(max(0, d)) + " ago"
}
