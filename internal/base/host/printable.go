package host

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable is a text of somebody else's, such as a cgroup's path or a thread's name, as it may be shown. One that could move a
// cursor, end a line or a cell, or is no UTF-8 is quoted, as Go does it: else whoever may make a cgroup could write lines of
// 'temper status', or end all metrics. Two paths that differ stay different, since none begins with a quote.
func Printable(text string) string {
	if utf8.ValidString(text) && strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		return text
	}
	return strconv.Quote(text)
}
