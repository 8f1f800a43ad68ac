// Package temper says which version of Temper this is. All of it has one, which is in the file VERSION.
package temper

import (
	_ "embed"
	"strings"
)

//go:embed VERSION
var text string

// Version is what the file VERSION says.
var Version = strings.TrimSpace(text)

// The build says these (the Makefile's STAMP).
var (
	commit string // of a release; other builds have none, so that equal sources give equal programs
	object string // the BPF object's hash
)

// Release is a version, and the commit that it was built from.
func Release() string { return "version  " + Version + "\ncommit   " + orUnknown(commit) + "\n" }

// Identity has the hash of the BPF object beside, which belongs to it. The words are those of 'scx_temper --version'.
func Identity() string { return Release() + "object   " + orUnknown(object) + "\n" }

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}
