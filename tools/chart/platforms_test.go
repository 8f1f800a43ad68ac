//go:build kubernetes

package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// platform is a file of charts/temper/platforms, and what it is for: of the agent's container, its volumes and beside it.
type platform struct {
	args    []string          // of the agent
	folders map[string]string // of the node, by volume
	made    []string          // objects that the default values do not make
}

var platforms = map[string]platform{
	"bottlerocket.yaml": {args: []string{"--system-cgroup=/runtime.slice"}, folders: map[string]string{"etc": "/var/lib/temper"}},
	"eks.yaml":          {args: []string{"--system-cgroup=/runtime.slice"}},
	"gke.yaml":          {folders: map[string]string{"etc": "/var/lib/temper"}, made: []string{"ResourceQuota temper"}},
	"kind.yaml":         {args: []string{"--safe-mode"}},
	"openshift.yaml":    {made: []string{"Role temper-agent-scc", "RoleBinding temper-agent-scc", "SecurityContextConstraints temper-agent"}},
	"talos.yaml": {args: []string{"--system-cgroup=/init", "--system-cgroup=/system", "--system-cgroup=/podruntime"},
		folders: map[string]string{"etc": "/var/lib/temper"}},
}

// What each file makes the API server takes, in a cluster whose namespaces are baseline unless they are labelled, as Talos' are;
// and it differs from what the default values make by what it is for, and by nothing else.
func TestPlatforms(t *testing.T) {
	cluster := apiServer(t, "PodSecurity", `
    apiVersion: pod-security.admission.config.k8s.io/v1
    kind: PodSecurityConfiguration
    defaults: {enforce: baseline, enforce-version: latest}`)
	home(t, cluster, defaultNamespace, privileged)
	home(t, cluster, "unlabelled", nil)
	files, err := os.ReadDir(filepath.Join(folder, "platforms"))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	standard := objectsOf(t, "")
	for _, file := range files {
		found = append(found, file.Name())
		text, err := os.ReadFile(filepath.Join(folder, "platforms", file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		objects := objectsOf(t, string(text))
		set := agentOf(t, objects)
		for name, object := range objects {
			if err := taken(t, cluster, object); err != nil {
				t.Errorf("%s: %s: %v", file.Name(), name, err)
			}
			if same := standard[name]; same != nil && name != agents && fmt.Sprint(same.Object) != fmt.Sprint(object.Object) {
				t.Errorf("%s changes %s", file.Name(), name)
			}
		}
		if err := cluster.Create(t.Context(), podOf(set, defaultNamespace), client.DryRunAll); err != nil {
			t.Errorf("%s: the agent's pod: %v", file.Name(), err)
		}
		if err := cluster.Create(t.Context(), podOf(set, "unlabelled"), client.DryRunAll); err == nil || !strings.Contains(err.Error(), "violates PodSecurity") {
			t.Errorf("%s: the agent's pod in a namespace without the label: %v", file.Name(), err)
		}
		platforms[file.Name()].check(t, file.Name(), objects, standard)
	}
	if want := slices.Sorted(maps.Keys(platforms)); !slices.Equal(found, want) {
		t.Errorf("platforms has %q, and this test knows %q", found, want)
	}
}

// check compares what a file makes with what the default values do.
func (p platform) check(t *testing.T, file string, objects, standard map[string]*unstructured.Unstructured) {
	t.Helper()
	got, want := agentOf(t, objects).Spec, agentOf(t, standard).Spec
	var made []string
	for name := range objects {
		if standard[name] == nil {
			made = append(made, name)
		}
	}
	if slices.Sort(made); !slices.Equal(made, p.made) {
		t.Errorf("%s makes %q beside what is usual, want %q", file, made, p.made)
	}
	pod := &want.Template.Spec
	for _, v := range pod.Volumes {
		if path := p.folders[v.Name]; path != "" {
			v.HostPath.Path = path
		}
	}
	c, usual := &pod.Containers[0], pod.Containers[0].Args
	c.Args = got.Template.Spec.Containers[0].Args
	if args := slices.DeleteFunc(slices.Clone(c.Args), func(arg string) bool { return slices.Contains(usual, arg) }); !slices.Equal(args, p.args) {
		t.Errorf("%s gives the agent %q, want %q", file, args, p.args)
	}
	if is, should := linesOf(t, got), linesOf(t, want); !slices.Equal(is, should) {
		more := slices.DeleteFunc(is, func(line string) bool { return slices.Contains(should, line) })
		t.Errorf("%s makes other agents; lines that nothing here asks for: %q", file, more)
	}
}

// linesOf are those of an object's part as YAML.
func linesOf(t *testing.T, part any) []string {
	t.Helper()
	text, err := yaml.Marshal(part)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(text), "\n")
}
