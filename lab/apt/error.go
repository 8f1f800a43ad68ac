package apt

import (
	"fmt"
	"strings"

	"temper.dev/temper/internal/base/exit"
)

// What apt and dpkg print when the disk is full, or the mirror out of reach.
var (
	diskWords    = []string{"No space left on device", "enough free space", "Disk quota exceeded"}
	networkWords = []string{
		"Could not resolve", "Temporary failure resolving", "Could not connect", "Unable to connect", "Connection failed",
		"Network is unreachable", "onnection timed out", "Connection refused", "No route to host", "Service Unavailable", "Bad Gateway",
	}
)

// explainApt turns apt's words into one line and an exit status.
func explainApt(what, stderr string, err error) error {
	if line := lineWith(stderr, diskWords); line != "" {
		return exit.New(exit.NoDisk, "make room, or set TEMPER_CACHE to a folder on another disk", "%s: %s", what, line)
	}
	if line := lineWith(stderr, networkWords); line != "" {
		return exit.New(exit.NoNetwork,
			"check the network and its proxy, or set TEMPER_DEBIAN_MIRROR to a mirror that answers", "%s: %s", what, line)
	}
	if line := lineWith(stderr, []string{"E: ", "error: "}); line != "" {
		return fmt.Errorf("%s: %s", what, line)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// lineWith is the first line of text that holds one of the words, without apt's "E:".
func lineWith(text string, words []string) string {
	for line := range strings.Lines(text) {
		for _, w := range words {
			if strings.Contains(line, w) {
				line = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(line), "E: "), "W: ")
				return strings.Join(strings.Fields(line), " ")
			}
		}
	}
	return ""
}
