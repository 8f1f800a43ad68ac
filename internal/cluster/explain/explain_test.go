package explain

import (
	"bytes"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"temper.dev/temper/internal/base/fixture"
	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/packaging/kubernetes"
)

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
	if want := map[string]int{"Service": 1, "monitoring.example/v1 Monitor": 1}; !maps.Equal(m.Others(), want) {
		t.Errorf("left alone are %v, not %v", m.Others(), want)
	}
	var got bytes.Buffer
	Write(&got, answers(t, m, nil))
	fixture.Golden(t, "shop.txt", got.String())
}

func answers(t *testing.T, m *Manifests, node labels.Set) []Answer {
	t.Helper()
	list, err := m.Answers(node)
	if err != nil {
		t.Fatal(err)
	}
	return list
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
metadata: {name: p, namespace: shop}
spec: {priorityClassName: gold, containers: [{name: c, image: i}]}
`

const shop = `
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {temper.dev/highest-tier: system}}
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
		name    string
		texts   []string
		node    labels.Set
		tier    tier.Tier
		unknown bool
	}{
		{name: "the class is there", texts: []string{goldPolicy, goldPod, goldClass}, node: latency, tier: tier.Critical},
		{name: "the class comes first", texts: []string{goldClass, goldPod, goldPolicy}, node: latency, tier: tier.Critical},
		{name: "the class is not there", texts: []string{goldPolicy, goldPod}, node: latency, tier: tier.Background, unknown: true},
		{name: "another node", texts: []string{goldPolicy, goldPod, goldClass}, tier: tier.Standard},
		{name: "a class for all",
			texts: []string{goldPolicy, strings.Replace(goldPod, "priorityClassName: gold, ", "", 1), goldClass + "globalDefault: true\n"}, node: latency, tier: tier.Critical},
		{name: "of two classes for all, the lower",
			texts: []string{goldPolicy, strings.Replace(goldPod, "priorityClassName: gold, ", "", 1), goldClass + "globalDefault: true\n",
				strings.NewReplacer("gold", "tin", "1000", "1").Replace(goldClass) + "globalDefault: true\n"}, node: latency, tier: tier.Background},
		{name: "the later class of one name", texts: []string{goldPolicy, goldPod, goldClass, strings.Replace(goldClass, "1000", "1", 1)}, node: latency, tier: tier.Background},
		{name: "the later policy of one name",
			texts: []string{goldPolicy, goldPod, goldClass, strings.Replace(goldPolicy, "critical", "system", 1)}, node: latency, tier: tier.System},
		{name: "a policy that is yet to be made beside one of the cluster",
			texts: []string{strings.Replace(goldPolicy, "name: gold}", "name: there, creationTimestamp: '2026-01-01T00:00:00Z'}", 1),
				strings.NewReplacer("name: gold}", "name: aaa}", "critical", "system").Replace(goldPolicy), goldPod, goldClass}, node: latency, tier: tier.Critical},
		{name: "an edited policy keeps its age",
			texts: []string{strings.Replace(goldPolicy, "name: gold}", "name: there, creationTimestamp: '2026-01-01T00:00:00Z'}", 1),
				strings.NewReplacer("name: gold}", "name: younger, creationTimestamp: '2026-01-02T00:00:00Z'}", "critical", "standard").Replace(goldPolicy),
				strings.NewReplacer("name: gold}", "name: there}", "critical", "system").Replace(goldPolicy), goldPod, goldClass}, node: latency, tier: tier.System},
		{name: "a pod that is bound to a node",
			texts: []string{goldPolicy, strings.Replace(goldPod, "spec: {", "spec: {nodeName: one, ", 1), goldClass,
				"apiVersion: v1\nkind: Node\nmetadata: {name: one, labels: {pool: latency}}"}, tier: tier.Critical},
		{name: "a pod that is bound to an unknown node",
			texts: []string{goldPolicy, strings.Replace(goldPod, "spec: {", "spec: {nodeName: one, ", 1), goldClass}, tier: tier.Standard, unknown: true},
		{name: "a LimitRange",
			texts: []string{goldPod, "apiVersion: v1\nkind: LimitRange\nmetadata: {name: l, namespace: shop}\nspec: {limits: []}"}, tier: tier.Standard, unknown: true},
		{name: "a LimitRange of another namespace",
			texts: []string{goldPod, "apiVersion: v1\nkind: LimitRange\nmetadata: {name: l, namespace: ns}\nspec: {limits: []}"}, tier: tier.Standard},
		{name: "a namespace that allows less",
			texts: []string{goldPolicy, goldPod, goldClass, strings.Replace(shop, "system", "standard", 1)}, node: latency, tier: tier.Standard},
		{name: "no class", texts: []string{goldPolicy, strings.Replace(goldPod, "priorityClassName: gold, ", "", 1), goldClass}, node: latency, tier: tier.Background},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := answers(t, readAll(t, append([]string{shop}, c.texts...)...), c.node)[0]
			if got.Tier != c.tier || (len(got.Unknown) > 0) != c.unknown {
				t.Errorf("got %+v, want tier %v, something unknown: %v", got, c.tier, c.unknown)
			}
		})
	}
}

func TestUnknownNamespaceIsTold(t *testing.T) {
	for _, c := range []struct{ pod, unknown string }{
		{goldPod, "whether its namespace is labelled temper.dev/highest-tier: critical; without, it is standard"},
		{strings.Replace(goldPod, "shop", "kube-system", 1), ""},
		{strings.Replace(goldPod, "priorityClassName: gold", "priorityClassName: system-node-critical", 1), ""},
	} {
		got := answers(t, readAll(t, goldClass, c.pod, strings.Replace(goldPolicy, "min: 500", "min: 500, max: 2000", 1)), labels.Set{"pool": "latency"})[0]
		if strings.Join(got.Unknown, "; ") != c.unknown {
			t.Errorf("%s: %q is not known", got.Name, got.Unknown)
		}
	}
}

func TestBadManifestsNameTheDocument(t *testing.T) {
	for what, c := range map[string]struct{ text, want string }{
		"no YAML":               {"a: [", "document 1"},
		"a misspelt field":      {goldPod + "---" + strings.Replace(goldPod, "containers", "container", 1), "document 2: strict decoding error"},
		"a bad policy":          {strings.Replace(goldPolicy, "critical", "urgent", 1), `unknown tier "urgent"`},
		"another version":       {strings.Replace(goldPolicy, "v1alpha1", "v1", 1), "is not known"},
		"another spelling":      {strings.Replace(goldPolicy, "TierPolicy", "Tierpolicy", 1), "is not known"},
		"no kind":               {"spec: {}", "Kind"},
		"an item of a list":     {"apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Pod, spec: {x: 1}}]", "items[0]"},
		"a list in a list":      {"apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: List, items: [{apiVersion: v1}]}]", "items[0]: items[0]"},
		"no object in a list":   {"apiVersion: v1\nkind: List\nitems: [1]", "items[0] is no object"},
		"text after a policy":   {goldPolicy + "---\nmore", "document 2"},
		"a key that is twice":   {strings.Replace(goldPod, "spec: {", "spec: {priorityClassName: tin, ", 1), "already"},
		"a document after dots": {goldPod + "...\n" + goldPolicy, "'...'"},
		"UTF-16":                {"a\x00:\x00", "UTF-8"},
	} {
		m := &Manifests{}
		if err := m.Read("file.yaml", strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "file.yaml") {
			t.Errorf("%s: got %v, want %q", what, err, c.want)
		}
	}
}

// As clusters print them: lists of any kind, with a status that may be newer than this program.
func TestListsOfTheCluster(t *testing.T) {
	m := readAll(t, "apiVersion: apps/v1\nkind: DeploymentList\nitems: [{metadata: {name: d, managedFields: [{x: 1}]}, spec: {selector: {}, template: {}}, status: {newField: 1}}]",
		"apiVersion: v1\nkind: PodList\nitems: [{metadata: {name: p}}]\n", "apiVersion: v1\nkind: ServiceList\nitems: [{metadata: {name: s}}]\n",
		`{"apiVersion":"temper.dev/v1alpha1","kind":"TierPolicyList","items":[{"metadata":{"name":"t"},"spec":{"qos":{"bestEffort":"critical"}}}]}`)
	got := answers(t, m, nil)
	if len(got) != 2 || got[0].Name != "Deployment/d" || got[1].Name != "Pod/p" || got[0].Tier != tier.Critical {
		t.Errorf("%+v", got)
	}
	if _, err := readAll(t, goldPolicy).Answers(nil); err == nil {
		t.Error("files without pods are an error")
	}
}

func TestMissingDefaultsAreAdded(t *testing.T) {
	m := readAll(t, goldPolicy, goldPod)
	added := m.AddMissing(readAll(t, strings.Replace(goldPolicy, "name: gold}", "name: default}", 1), goldClass))
	if !slices.Equal(added, []string{"TierPolicy/default", "PriorityClass/gold"}) || len(m.policies) != 2 {
		t.Errorf("%v, %v", added, m.policies)
	}
	if again := m.AddMissing(readAll(t, strings.Replace(goldPolicy, "critical", "system", 1), goldClass)); len(again) != 0 {
		t.Errorf("%v are there already", again)
	}
}

// The QoS class is that of the pod that the API server makes of a manifest.
func TestRequestsAreFilledIn(t *testing.T) {
	const head = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: "
	for _, c := range []struct{ spec, class string }{
		{"{containers: [{name: c, resources: {limits: {cpu: 1, memory: 1Gi}}}]}", "Guaranteed"},
		{"{containers: [{name: c, resources: {limits: {cpu: 1, memory: 1Gi}, requests: {cpu: 1}}}]}", "Guaranteed"},
		{"{containers: [{name: c, resources: {limits: {cpu: 1, memory: 1Gi}, requests: {cpu: 500m}}}]}", "Burstable"},
		{"{containers: [{name: c, resources: {limits: {example.com/gpu: 1}}}]}", "BestEffort"},
		{"{resources: {limits: {cpu: 2, memory: 2Gi}}, containers: [{name: c}]}", "Guaranteed"},
		{"{resources: {limits: {cpu: 2, memory: 2Gi}}, containers: [{name: c, resources: {requests: {cpu: 500m, memory: 1Gi}}}]}", "Burstable"},
	} {
		m := readAll(t, head+c.spec, string(kubernetes.DefaultPolicy))
		if got := answers(t, m, nil)[0]; got.Reason != "QoS class "+c.class {
			t.Errorf("%s: %s, not %s", c.spec, got.Reason, c.class)
		}
	}
}

// What a DaemonSet makes is of it, whatever the manifest's pods say.
func TestPodsOfADaemonSet(t *testing.T) {
	const spec = "metadata: {name: d, namespace: shop}\nspec: {selector: {}, template: {spec: {containers: [{name: c}]}}}"
	for _, c := range []struct {
		text string
		want tier.Tier
	}{
		{"apiVersion: apps/v1\nkind: DaemonSet\n" + spec, tier.Standard},
		{"apiVersion: apps/v1\nkind: Deployment\n" + spec, tier.Background},
		{"apiVersion: v1\nkind: Pod\nmetadata: {name: p, ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: d, uid: u, controller: true}]}\nspec: {containers: [{name: c}]}", tier.Standard},
		{"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c}]}", tier.Background},
	} {
		if got := answers(t, readAll(t, c.text, string(kubernetes.DefaultPolicy)), nil)[0]; got.Tier != c.want {
			t.Errorf("%s: got %v, want %v", c.text, got.Tier, c.want)
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
	if err := m.ReadPath(folder); err != nil || len(m.pods) != 2 {
		t.Errorf("%v, %v", m.pods, err)
	}
	if err := m.ReadPath(folder + "/README"); err == nil {
		t.Error("a file that is named is read, whatever it is called")
	}
	if err := m.ReadPath(folder + "/none"); err == nil {
		t.Error("a file that is not there is an error")
	}
}
