package core_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// ../../spec/failures.md names the tests of each case: one that is renamed or taken away is missed here.
func TestFailuresNameTheirTests(t *testing.T) {
	named := 0
	for line := range strings.Lines(read(t, "../../spec/failures.md")) {
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
		t.Error("../../spec/failures.md names no tests")
	}
}

// exists says whether there is a test of this name; ../../spec/failures.md says how they are named.
func exists(t *testing.T, name string) bool {
	const cpp, java = "../../cpp/test/", "../../java/*/src/test/java/dev/temper/pathfence/"
	class, method, isJava := strings.Cut(name, ".")
	switch {
	case strings.HasPrefix(name, "vectors/"):
		return read(t, "../../spec/"+name+".json") != ""
	case isJava:
		return strings.Contains(read(t, java+class+".java", java+"*/"+class+".java"), "void "+method+"(")
	case strings.HasPrefix(name, "Test"):
		return strings.Contains(read(t, "*_test.go", "sim/*_test.go", "../*_test.go", "../pathfencegrpc/*_test.go"), "func "+name+"(")
	case strings.HasSuffix(name, "_test"):
		return read(t, cpp+name+".cpp") != ""
	default:
		return strings.Contains(read(t, cpp+"*.cpp"), `TEST_CASE("`+name+`")`)
	}
}

// read gives the text of all files that fit one of the patterns.
func read(t *testing.T, patterns ...string) string {
	var all strings.Builder
	for _, p := range patterns {
		files, err := filepath.Glob(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(b)
		}
	}
	return all.String()
}
