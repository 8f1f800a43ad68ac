package manual

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	aside = regexp.MustCompile(` \(\[[^\]]*\]\([^)]*\)\)`) // a link in brackets leads out of a manual page
	link  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	row   = regexp.MustCompile("^\\| `?(.*?)`? \\| (.*) \\|$")
)

// definitions are the table below a document's heading as a Markdown list, without temper-lab's rows, and the text after it.
func definitions(document []byte, heading string) (string, error) {
	_, text, _ := strings.Cut(string(document), "\n## "+heading+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	_, text, ok := strings.Cut(text, "\n| --- | --- |\n")
	if !ok {
		return "", fmt.Errorf("there is no table of two columns under %q", heading)
	}
	var b strings.Builder
	for line := range strings.SplitSeq(link.ReplaceAllString(aside.ReplaceAllString(text, ""), "$1"), "\n") {
		if !strings.HasPrefix(line, "|") {
			b.WriteString(line + "\n")
		} else if !strings.Contains(line, "temper-lab") {
			b.WriteString(row.ReplaceAllString(line, "**$1**\n: $2\n") + "\n")
		}
	}
	return b.String() + "\n", nil
}
