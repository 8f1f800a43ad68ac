package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const failures = "pathfence/spec/failures.md"

// The list names the tests of each case, in three languages: one that is renamed or taken away is missed here.
func TestFailuresNameTheirTests(t *testing.T) {
	named := 0
	for line := range strings.Lines(string(readFile(t, failures))) {
		columns := strings.Split(line, "|")
		if len(columns) != 5 {
			continue
		}
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(columns[3], -1) {
			named++
			if !exists(t, name[1]) {
				t.Errorf("there is no test %s, of the case %q", name[1], strings.TrimSpace(columns[1]))
			}
		}
	}
	if named == 0 {
		t.Error(failures, "names no tests")
	}
}

// exists says whether there is a test of this name; the list says how they are named.
func exists(t *testing.T, name string) bool {
	class, method, isJava := strings.Cut(name, ".")
	switch {
	case strings.HasPrefix(name, "vectors/"):
		return textOf(t, "spec/"+name+".json") != ""
	case isJava:
		const java = "java/*/src/test/java/dev/temper/pathfence/"
		return regexp.MustCompile(`(void|Stream<DynamicTest>) ` + method + `\(`).MatchString(textOf(t, java+class+".java", java+"*/"+class+".java"))
	case strings.HasPrefix(name, "Test"):
		return strings.Contains(textOf(t, "go/*_test.go", "go/core/*_test.go", "go/core/sim/*_test.go", "go/pathfencegrpc/*_test.go"), "func "+name+"(")
	case strings.HasSuffix(name, "_test"):
		return textOf(t, "cpp/test/"+name+".cpp") != ""
	default:
		return strings.Contains(textOf(t, "cpp/test/*.cpp"), `TEST_CASE("`+name+`")`)
	}
}

// textOf gives the text of all files of PathFence that fit one of the patterns.
func textOf(t *testing.T, patterns ...string) string {
	t.Helper()
	var all strings.Builder
	for _, pattern := range patterns {
		files, err := filepath.Glob(filepath.Join(repository, "pathfence", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(text)
		}
	}
	return all.String()
}
