package kernels

import (
	"cmp"
	"strings"
)

// compareVersions orders versions as dpkg does (without epochs): digits by value, letters before
// other characters, and "~" before everything, the end included.
func compareVersions(a, b string) int {
	for a != "" || b != "" {
		var x, y string
		x, a = span(a, false)
		y, b = span(b, false)
		if c := compareText(x, y); c != 0 {
			return c
		}
		x, a = span(a, true)
		y, b = span(b, true)
		x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
		if c := cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y)); c != 0 {
			return c
		}
	}
	return 0
}

// span splits s where its leading run of digits, or of anything else, ends.
func span(s string, digits bool) (run, rest string) {
	for i := range len(s) {
		if isDigit(s[i]) != digits {
			return s[:i], s[i:]
		}
	}
	return s, ""
}

func compareText(a, b string) int {
	for i := range max(len(a), len(b)) {
		if c := cmp.Compare(rank(a, i), rank(b, i)); c != 0 {
			return c
		}
	}
	return 0
}

func rank(s string, i int) int {
	switch {
	case i >= len(s):
		return 0
	case s[i] == '~':
		return -1
	case s[i]|0x20 >= 'a' && s[i]|0x20 <= 'z':
		return int(s[i])
	}
	return int(s[i]) + 256
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
