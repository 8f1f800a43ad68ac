package workload

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The page for users shows the example as it is, and has every field.
func TestPageHasEveryField(t *testing.T) {
	text, err := os.ReadFile("../../docs/start/workload.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	for _, name := range []string{"nginx", "memcached-sysbench"} {
		example, err := os.ReadFile("../workloads/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(page, "```yaml\n"+string(example)+"```") {
			t.Errorf("docs/start/workload.md does not show lab/workloads/%s.yaml as it is", name)
		}
	}
	for what, unknown := range map[string]string{
		"a workload": "x: 1", "a background": "background: {x: 1}", "a service": "services: [{x: 1}]", "a client": "client: {x: 1}", "an HTTP client": "client: {http: {x: 1}}",
		"a memcached client": "client: {memcached: {x: 1}}", "a redis client": "client: {redis: {x: 1}}",
		"a PostgreSQL client": "client: {postgres: {x: 1}}",
	} {
		_, err := parse("f.yaml", []byte(unknown))
		_, names, ok := strings.Cut(err.Error(), "choose from ")
		if !ok {
			t.Fatalf("%s: %v", what, err)
		}
		for name := range strings.SplitSeq(names, ", ") {
			if !regexp.MustCompile("`(client\\.)?" + name + "`").MatchString(page) {
				t.Errorf("docs/start/workload.md lacks the field %s of %s", name, what)
			}
		}
	}
}

// The example is what the documents promise: a program from its binary to a report by one short file.
func TestExamplesAreShort(t *testing.T) {
	files, err := filepath.Glob("../workloads/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines := 0
		for _, c := range text {
			if c == '\n' {
				lines++
			}
		}
		if _, err := Read(file); err != nil || lines > 25 {
			t.Errorf("%s: %d lines, at most 25; %v", file, lines, err)
		}
	}
}
