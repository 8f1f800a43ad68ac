package workload

import (
	"os"
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
	example, err := os.ReadFile("../workloads/nginx.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(page, "```yaml\n"+string(example)+"```") {
		t.Error("docs/start/workload.md does not show lab/workloads/nginx.yaml as it is")
	}
	for what, unknown := range map[string]string{
		"a workload": "x: 1", "a service": "services: [{x: 1}]", "a client": "client: {x: 1}", "an HTTP client": "client: {http: {x: 1}}",
		"a memcached client": "client: {memcached: {x: 1}}",
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
