package collect

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"temper.dev/temper/internal/capacity/sample"
	"temper.dev/temper/internal/capacity/snapshot"
)

var now = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

const (
	nodes = `
{apiVersion: v1, kind: Node, metadata: {name: a}, status: {allocatable: {cpu: 8, memory: 32Gi, pods: 110}, capacity: {cpu: 8}}}
---
{apiVersion: v1, kind: Node, metadata: {name: b}, status: {allocatable: {cpu: 8, memory: 32Gi, pods: 110}, capacity: {cpu: 8}}}
---
`
	containers = `containers: [{name: c, image: i, env: [{name: PASSWORD, value: secret}], resources: {limits: {cpu: 2}}}]`
	web        = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {replicas: 3, selector: {}, template: {spec: {` + containers + `}}}}
---
`
	webSet = `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-7d, namespace: shop, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: deployment, controller: true}]},
  spec: {replicas: 3, selector: {}, template: {spec: {` + containers + `}}}}
---
`
	webPod = `{apiVersion: v1, kind: Pod, metadata: {name: web-7d-1, namespace: shop, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web-7d, uid: set, controller: true}]},
  spec: {nodeName: a, ` + containers + `}}
---
`
	daemon = `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: log, namespace: shop}, spec: {selector: {}, template: {spec: {` + containers + `}}}}
---
`
	recommendation = `{apiVersion: autoscaling.k8s.io/v1, kind: VerticalPodAutoscaler, metadata: {name: web, namespace: shop},
  spec: {targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}},
  status: {recommendation: {containerRecommendations: [{containerName: c, target: {cpu: 300m}}]},
    conditions: [{type: RecommendationProvided, status: "True", lastTransitionTime: "2026-01-01T00:00:00Z"}]}}
---
`
)

func read(text string) (*Result, error) {
	return FromFiles(strings.NewReader(text), []string{"-"}, now)
}

func TestPodsOfManifests(t *testing.T) {
	for _, c := range []struct {
		what, text string
		want       []string // pod@node
	}{
		{"a workload counts with its replicas", web, []string{"shop/web-0@", "shop/web-1@", "shop/web-2@"}},
		{"its ReplicaSet is no other", web + webSet, []string{"shop/web-0@", "shop/web-1@", "shop/web-2@"}},
		{"pods that are there are not made again", nodes + web + webSet + webPod, []string{"shop/web-7d-1@a"}},
		{"a DaemonSet has a pod on each node", nodes + daemon, []string{"shop/log-a@a", "shop/log-b@b"}},
		{"a DaemonSet without nodes", daemon, []string{"shop/log-0@"}},
		{"a pod's node is in no file", webPod, []string{"shop/web-7d-1@"}},
	} {
		r, err := read(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		var got []string
		for _, pod := range r.Pods {
			got = append(got, snapshot.Key(pod)+"@"+pod.Spec.NodeName)
			if cpu := pod.Spec.Containers[0].Resources.Requests.Cpu(); cpu.Value() != 2 || pod.Spec.Priority == nil || len(pod.Spec.Containers[0].Env) != 0 {
				t.Errorf("%s: %s requests %v, priority %v, environment %v; want its limit of 2, a priority, and no environment", c.what, pod.Name, cpu, pod.Spec.Priority, pod.Spec.Containers[0].Env)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
		if err := r.Check(); err != nil {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}

// A file may have the pods of a Deployment and not the ReplicaSet between.
func TestPodsWithoutTheirReplicaSet(t *testing.T) {
	r, err := read(nodes + web + strings.Replace(webPod, "namespace: shop,", "namespace: shop, labels: {pod-template-hash: 7d},", 1))
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Pods) != 1 {
		t.Errorf("%d pods, want the one that is there", len(r.Pods))
	} else if got, want := r.Workloads()(r.Pods[0]), (snapshot.Workload{Namespace: "shop", Kind: "Deployment", Name: "web"}); got != want {
		t.Errorf("its workload is %v, want %v", got, want)
	}
}

// By the older form of its API, too.
func TestAutoscalersOfManifests(t *testing.T) {
	for _, version := range []string{"autoscaling/v1", "autoscaling/v2"} {
		r, err := read(web + "{apiVersion: " + version + ", kind: HorizontalPodAutoscaler, metadata: {name: x, namespace: shop}, spec: {maxReplicas: 9, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}")
		if err != nil {
			t.Errorf("%s: %v", version, err)
		} else if len(r.Autoscalers) != 1 || r.Autoscalers[0].Namespace != "shop" || r.Autoscalers[0].Spec.ScaleTargetRef.Name != "web" {
			t.Errorf("%s: %+v, want one of shop/web", version, r.Autoscalers)
		}
	}
}

func TestFilesThatAreRefused(t *testing.T) {
	for _, c := range []struct{ what, text, want string }{
		{"nothing", "", "nothing in the files that makes pods"},
		{"nodes alone", nodes, "nothing in the files that makes pods"},
		{"a misspelt field", strings.Replace(web, "replicas", "replcas", 1), `unknown field "spec.replcas"`},
		{"a node without what it offers", "{apiVersion: v1, kind: Node, metadata: {name: a}}\n---\n" + webPod, "node a has no status.allocatable"},
		{"a snapshot after pods", "", "give it first"},
	} {
		files := []string{"-"}
		if strings.HasPrefix(c.what, "a snapshot") {
			folder := t.TempDir()
			pods, file := filepath.Join(folder, "pods.yaml"), filepath.Join(folder, "snapshot.json")
			if err := os.WriteFile(pods, []byte(webPod), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(`{"nodes":[],"pods":[]}`), 0o600); err != nil {
				t.Fatal(err)
			}
			files = []string{pods, file}
		}
		_, err := FromFiles(strings.NewReader(c.text), files, now)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.what, err, c.want)
		}
	}
}

func TestWhatIsLeftAloneIsSaid(t *testing.T) {
	r, err := read(webPod + `
{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}
---
{apiVersion: v1, kind: LimitRange, metadata: {name: x}}
---
{apiVersion: example.com/v1, kind: Other, metadata: {name: x}}
---
{apiVersion: temper.dev/v1alpha1, kind: TierPolicy, metadata: {name: bad}, spec: {rules: [{name: x, tier: nonsense}]}}
`)
	if err != nil {
		t.Fatal(err)
	}
	said := strings.Join(r.Notes, "\n")
	for _, want := range []string{"1 of ConfigMap", "1 of example.com/v1 Other", "LimitRanges", "left out: TierPolicy bad", "no file has those nodes", "Temper's own TierPolicy stands in"} {
		if !strings.Contains(said, want) {
			t.Errorf("notes lack %q:\n%s", want, said)
		}
	}
	if len(r.TierPolicies) != 1 || r.TierPolicies[0].Name != "default" || r.class("temper-critical") == nil {
		t.Errorf("policies are %v", r.TierPolicies)
	}
}

// A Deployment's autoscaler is for the pods of its ReplicaSet, and has had something to recommend for 36 hours.
func TestRecommendations(t *testing.T) {
	for _, c := range []struct {
		what, text string
		want       string
	}{
		{"of its pods", nodes + web + webSet + webPod + recommendation, "300m in 36 h"},
		{"before its pods", recommendation + nodes + web + webSet + webPod, "300m in 36 h"},
		{"of another container, whose request stays", nodes + web + webSet + webPod + strings.Replace(recommendation, "containerName: c", "containerName: d", 1), "2 in 36 h"},
		{"not provided any more", nodes + web + webSet + webPod + strings.Replace(recommendation, `"True"`, `"False"`, 1), "300m in 0 h"},
		{"of another workload", nodes + web + webSet + webPod + strings.Replace(recommendation, "Deployment, name: web", "Deployment, name: other", 1), "0 in 0 h"},
	} {
		r, err := read(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		got := r.Recommended["shop/web-7d-1"]
		if text := fmt.Sprintf("%s in %v h", got.CPU.String(), got.Hours); text != c.want {
			t.Errorf("%s: %s, want %s", c.what, text, c.want)
		}
	}
}

// A snapshot is read as it was written, and may be followed by what is to be changed in it.
func TestSnapshots(t *testing.T) {
	s, err := sample.Random(1)
	if err != nil {
		t.Fatal(err)
	}
	file, more := filepath.Join(t.TempDir(), "snapshot.json"), filepath.Join(t.TempDir(), "more.yaml")
	var text bytes.Buffer
	if err := s.Write(&text); err != nil {
		t.Fatal(err)
	}
	for name, what := range map[string]string{file: text.String(), more: web} {
		if err := os.WriteFile(name, []byte(what), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := FromFiles(nil, []string{file, more}, now)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Nodes) != len(s.Nodes) || len(r.Pods) != len(s.Pods)+3 || len(r.TemperNodes) != len(s.TemperNodes) {
		t.Errorf("%d nodes, %d pods, %d reports; want %d, %d, %d", len(r.Nodes), len(r.Pods), len(r.TemperNodes), len(s.Nodes), len(s.Pods)+3, len(s.TemperNodes))
	}
	i := slices.IndexFunc(r.Pods, func(p *corev1.Pod) bool { return p.Namespace == sample.Namespace })
	if i < 0 || r.Pods[i].UID == "" {
		t.Error("no pod of the snapshot is there")
	}
}
