package explain

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"temper.dev/temper/internal/tier"
	"temper.dev/temper/packaging/kubernetes"
)

var update = flag.Bool("update", false, "rewrite the golden file")

func readAll(t *testing.T, texts ...string) *Manifests {
	t.Helper()
	m := &Manifests{}
	for _, text := range texts {
		if err := m.Read("test", strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func TestTableOfADefaultCluster(t *testing.T) {
	m := readAll(t, string(kubernetes.DefaultPolicy), string(kubernetes.PriorityClasses))
	if err := m.ReadPath("testdata/shop.yaml"); err != nil {
		t.Fatal(err)
	}
	if m.Others != 2 {
		t.Errorf("%d objects have no pods, not 2", m.Others)
	}
	var got bytes.Buffer
	Write(&got, m.Answers(nil))
	const path = "testdata/shop.txt"
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("%s differs; if that is right, run the test with -update\ngot:\n%s", path, got.String())
	}
}

const goldPolicy = `
apiVersion: temper.dev/v1alpha1
kind: TierPolicy
metadata: {name: gold}
spec:
  nodeSelector: {matchLabels: {pool: latency}}
  rules: [{name: gold, priority: {min: 500}, tier: critical}]
`

const goldPod = `
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {priorityClassName: gold, containers: [{name: c, image: i}]}
`

const goldClass = `
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: gold}
value: 1000
`

func TestPriorityOfAClassIsLookedUp(t *testing.T) {
	latency := labels.Set{"pool": "latency"}
	for _, c := range []struct {
		what    string
		texts   []string
		node    labels.Set
		tier    tier.Tier
		unknown bool
	}{
		{"the class is there", []string{goldPolicy, goldPod, goldClass}, latency, tier.Critical, false},
		{"the class comes first", []string{goldClass, goldPod, goldPolicy}, latency, tier.Critical, false},
		{"the class is not there", []string{goldPolicy, goldPod}, latency, tier.Background, true},
		{"another node", []string{goldPolicy, goldPod, goldClass}, nil, tier.Standard, false},
		{"a class for all", []string{goldPolicy, strings.Replace(goldPod, "priorityClassName: gold, ", "", 1), goldClass + "globalDefault: true\n"}, latency, tier.Critical, false},
		{"no class", []string{goldPolicy, strings.Replace(goldPod, "priorityClassName: gold, ", "", 1), goldClass}, latency, tier.Background, false},
	} {
		got := readAll(t, c.texts...).Answers(c.node)[0]
		if got.Tier != c.tier || (got.Unknown != "") != c.unknown {
			t.Errorf("%s: %+v", c.what, got)
		}
	}
}

func TestBadManifestsNameTheDocument(t *testing.T) {
	for what, c := range map[string]struct{ text, want string }{
		"no YAML":             {"a: [", "document 1"},
		"a misspelt field":    {goldPod + "---" + strings.Replace(goldPod, "containers", "container", 1), "document 2: strict decoding error"},
		"a bad policy":        {strings.Replace(goldPolicy, "critical", "urgent", 1), `unknown tier "urgent"`},
		"no kind":             {"spec: {}", "Kind"},
		"an item of a list":   {"apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Pod, spec: {x: 1}}]", "items[0]"},
		"a list in a list":    {"apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: List, items: [{apiVersion: v1}]}]", "items[0]: items[0]"},
		"text after a policy": {goldPolicy + "---\nmore", "document 2"},
	} {
		m := &Manifests{}
		if err := m.Read("file.yaml", strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "file.yaml") {
			t.Errorf("%s: got %v, want %q", what, err, c.want)
		}
	}
}

func TestFolderOfManifests(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{"a.yaml": goldPod, "b/c.json": `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"q"}}`, "README": "no manifest"} {
		path := folder + "/" + name
		if err := os.MkdirAll(path[:strings.LastIndex(path, "/")], 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	m := &Manifests{}
	if err := m.ReadPath(folder); err != nil || len(m.Pods) != 2 {
		t.Errorf("%v, %v", m.Pods, err)
	}
	if err := m.ReadPath(folder + "/README"); err == nil {
		t.Error("a file that is named is read, whatever it is called")
	}
	if err := m.ReadPath(folder + "/none"); err == nil {
		t.Error("a file that is not there is an error")
	}
}
