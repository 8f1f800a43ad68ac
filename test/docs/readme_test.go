package docs

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// The bars of the README: a reader sees in two minutes what Temper is, and soon what to type.
const (
	mostWords         = 800 // as wc -w counts them: generated figures, code and markup included
	mostBeforeCommand = 150 // before the first code block
	longestSentence   = 30  // outside of code; a cell of a table is a sentence
)

func TestReadmeIsShort(t *testing.T) {
	for _, fault := range tooLong(string(readFile(t, "README.md"))) {
		t.Error("README.md:", fault)
	}
}

func TestLongPagesAreFound(t *testing.T) {
	words := func(n int) string { return strings.TrimSpace(strings.Repeat("word ", n)) }
	sentences := func(n int) string { return strings.Repeat(words(10)+". ", n/10) }
	tests := []struct {
		name, page string
		want       []string
	}{
		{"at its bars", sentences(120) + words(30) + ".\n\n    make\n\n" + sentences(640) + words(9), nil},
		{"a word too many", words(30) + ".\n\n    make\n\n" + sentences(760) + words(10), []string{"801 words"}},
		{"code and markup count", "```\n" + words(798) + "\n```\n|\n", []string{"801 words"}},
		{"comments are no text", "<!-- " + words(200) + " -->\n" + words(3) + "\n\n    make\n", nil},
		{"addresses are no words of a sentence", "    make\n\n" + words(29) + " [word](a/b.md).", nil},
		{"a late command", sentences(150) + "word.\n\n    make\n", []string{"151 words before the first command"}},
		{"no command", words(3), []string{"no command"}},
		{"a long sentence", "    make\n\n" + words(31) + ". Short.", []string{"31 words in a sentence"}},
		{"a long sentence over lines", "    make\n\n" + words(16) + "\n" + words(15), []string{"31 words in a sentence"}},
		{"a long item of a list", "    make\n\n- " + words(31) + "\n- " + words(30) + "\n", []string{"31 words in a sentence"}},
		{"cells are apart", "    make\n\n| " + words(20) + " | " + words(20) + " |\n| --- | --- |\n", nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := tooLong(test.page)
			ok := len(got) == len(test.want)
			for i := range test.want {
				ok = ok && strings.HasPrefix(got[i], test.want[i])
			}
			if !ok {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

var (
	comment     = regexp.MustCompile(`(?s)<!--.*?-->`)
	address     = regexp.MustCompile(`\]\([^)\s]*\)`)
	word        = regexp.MustCompile(`\S*[\p{L}\p{N}]\S*`)
	sentenceEnd = regexp.MustCompile(`[.!?][*_)"]*(?:\s|$)`)
	blockStart  = regexp.MustCompile(`^(?:#+ |[-*] |\d+\. |\|)`)
)

// tooLong names the bars of the README that a page misses.
func tooLong(page string) []string {
	words := len(strings.Fields(page))
	page = address.ReplaceAllString(comment.ReplaceAllString(page, ""), "]")
	var (
		faults []string
		text   []string // the block under way
		blocks []string // paragraphs, items, headings, cells
		before = -1     // words before the first code; -1: there is none yet
		read   int
		fenced bool
	)
	end := func() {
		blocks = append(blocks, strings.Join(text, " "))
		text = nil
	}
	for line := range strings.Lines(page) {
		line = strings.TrimRight(line, "\n")
		marker := strings.HasPrefix(line, "```")
		code := marker || fenced || strings.HasPrefix(line, "    ") && len(text) == 0
		if code && before < 0 {
			before = read
		}
		read += count(line)
		switch {
		case marker:
			fenced = !fenced
			end()
		case code:
		case strings.TrimSpace(line) == "":
			end()
		case strings.HasPrefix(line, "|"):
			end()
			blocks = append(blocks, strings.Split(line, "|")...)
		default:
			if blockStart.MatchString(line) {
				end()
			}
			text = append(text, line)
		}
	}
	end()
	if words > mostWords {
		faults = append(faults, fmt.Sprintf("%d words, at most %d", words, mostWords))
	}
	if before < 0 {
		faults = append(faults, "no command")
	} else if before > mostBeforeCommand {
		faults = append(faults, fmt.Sprintf("%d words before the first command, at most %d", before, mostBeforeCommand))
	}
	for _, block := range blocks {
		for _, sentence := range sentenceEnd.Split(block, -1) {
			if n := count(sentence); n > longestSentence {
				faults = append(faults, fmt.Sprintf("%d words in a sentence, at most %d: %s", n, longestSentence, sentence))
			}
		}
	}
	return faults
}

// count is how many words a text has: whatever stands between spaces and has a letter or a digit.
func count(text string) int { return len(word.FindAllString(text, -1)) }
