package temper

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

var write = flag.Bool("write-version", false, "write the version to the files that are read without a build")

// stated are the files that have to say the version themselves, since others than the build read them. A group is the version,
// where a pattern finds it first.
var stated = map[string][]string{
	"README.md":                                    {`(?m)^Version (\S+), `},
	"CHANGELOG.md":                                 {`(?m)^## (\d\S*?),? `},
	"charts/temper/Chart.yaml":                     {`(?m)^version: (\S+)$`, `(?m)^appVersion: "?([^"\n]+)"?$`},
	"docs/kubernetes.md":                           {"`temper\\.dev/temper:([^`]+)` is its name"},
	"packaging/kubernetes/agent.yaml":              {`image: "temper\.dev/temper:([^"]+)"`},
	"docs/start/host.md":                           {`dist/temper_([^-]+)-1_`, `install \./temper_([^-]+)-1_`},
	"docs/start/pathfence-java.md":                 {`<artifactId>temper-pathfence-[a-z-]+</artifactId>\s*<version>([^<]+)<`},
	"pathfence/bench/java/pom.xml":                 {parentVersion},
	"pathfence/examples/cpp/CMakeLists.txt":        {`find_package\(temper-pathfence (\S+) `},
	"pathfence/examples/java/pom.xml":              {`<artifactId>temper-pathfence-[a-z-]+</artifactId>\s*<version>([^<]+)<`},
	"pathfence/java/README.md":                     {"`dev\\.temper`, version `([^`]+)`"},
	"pathfence/java/pom.xml":                       {parentVersion},
	"pathfence/java/core/pom.xml":                  {parentVersion},
	"pathfence/java/grpc/pom.xml":                  {parentVersion},
	"pathfence/java/pool/pom.xml":                  {parentVersion},
	"pathfence/java/spring-boot-3-starter/pom.xml": {parentVersion},
	"pathfence/java/spring-boot-starter/pom.xml":   {parentVersion},
	"pathfence/java/thrift/pom.xml":                {parentVersion},
}

const parentVersion = `<artifactId>temper-pathfence-parent</artifactId>\s*<version>([^<]+)<`

func TestFilesStateTheVersion(t *testing.T) {
	for path, patterns := range stated {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, pattern := range patterns {
			data = checkVersion(t, path, pattern, data)
		}
		if !*write {
			continue
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Error(err)
		}
	}
}

// checkVersion returns the text with the version in its place.
func checkVersion(t *testing.T, path, pattern string, data []byte) []byte {
	t.Helper()
	m := regexp.MustCompile(pattern).FindSubmatchIndex(data)
	if m == nil {
		t.Errorf("%s: nothing matches %s", path, pattern)
		return data
	}
	if got := string(data[m[2]:m[3]]); got != Version && !*write {
		t.Errorf("%s says %s, VERSION says %s: run 'make version'", path, got, Version)
	}
	return []byte(string(data[:m[2]]) + Version + string(data[m[3]:]))
}

// No artifact of Maven is left out above.
func TestAllProjectsOfMavenAreListed(t *testing.T) {
	for _, pattern := range []string{"pathfence/*/pom.xml", "pathfence/*/*/pom.xml"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			if _, listed := stated[path]; !listed {
				t.Errorf("%s is not among the files that state the version", path)
			}
		}
	}
}
