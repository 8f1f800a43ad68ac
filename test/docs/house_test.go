package docs

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

const (
	decision     = "docs/decisions/0069-how-much-code.md"
	longFile     = 400 // lines
	longFunction = 60
)

// source is code that we wrote, without tests.
var source = regexp.MustCompile(`\.(go|c|h|cc|hpp|java|py|js)$`)

// longFiles are those of the house, by path, with their lines.
func longFiles(t *testing.T) map[string]int {
	t.Helper()
	listed, err := exec.Command("git", "-C", repository, "ls-files").Output()
	if err != nil {
		t.Fatal(err)
	}
	long := map[string]int{}
	for path := range strings.Lines(string(listed)) {
		path = strings.TrimSpace(path)
		if !source.MatchString(path) || strings.Contains(path, "_test.") || strings.Contains(path, "/test/") || strings.HasPrefix(path, "test/") {
			continue
		}
		text := readFile(t, path)
		if bytes.Contains(text[:min(len(text), 300)], []byte("DO NOT EDIT")) {
			continue
		}
		if strings.HasSuffix(path, ".go") {
			checkFunctions(t, path, text)
		}
		if n := bytes.Count(text, []byte("\n")); n > longFile {
			long[path] = n
		}
	}
	return long
}

func checkFunctions(t *testing.T, path string, text []byte) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, text, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range file.Decls {
		if f, isFunction := d.(*ast.FuncDecl); isFunction {
			if n := files.Position(f.End()).Line - files.Position(f.Pos()).Line + 1; n > longFunction {
				t.Errorf("%s: %s has %d lines, more than %d: split it", path, f.Name, n, longFunction)
			}
		}
	}
}

var reasoned = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| .+ \\|$")

// What is long has a reason that somebody wrote down, and a reason ends with what it is for.
func TestLongFilesHaveReasons(t *testing.T) {
	long := longFiles(t)
	stated := map[string]bool{}
	for _, m := range reasoned.FindAllStringSubmatch(string(readFile(t, decision)), -1) {
		stated[m[1]] = true
	}
	for path, n := range long {
		if !stated[path] {
			t.Errorf("%s has %d lines, more than %d: split it, or give its reason in %s", path, n, longFile, decision)
		}
	}
	for path := range stated {
		if long[path] == 0 {
			t.Errorf("%s gives a reason for %s, which has no more than %d lines", decision, path, longFile)
		}
	}
}
