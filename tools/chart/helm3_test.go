package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/yaml"
)

// Many clusters have Helm 3 still: it makes of the chart what Helm 4 does, and refuses what Helm 4 refuses.
func TestHelm3MakesTheSame(t *testing.T) {
	three, err := loader.Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	four := load(t)
	for name, given := range valuesForHelm3(t) {
		t.Run(name, func(t *testing.T) {
			want, refused := render(four, given, defaultNamespace)
			release := chartutil.ReleaseOptions{Name: "temper", Namespace: defaultNamespace, Revision: 1, IsInstall: true}
			all, err := chartutil.ToRenderValues(three, given, release, chartutil.DefaultCapabilities)
			var got map[string]string
			if err == nil {
				got, err = engine.Engine{Strict: true}.Render(three, all)
			}
			if (err == nil) != (refused == nil) {
				t.Fatalf("Helm 3 says %v, Helm 4 says %v", err, refused)
			}
			for _, file := range slices.Sorted(maps.Keys(want)) {
				if text := got["temper/templates/"+file]; text != want[file] {
					t.Errorf("%s: Helm 3 makes\n%s\nand Helm 4\n%s", file, text, want[file])
				}
			}
		})
	}
}

// valuesForHelm3 are none, all that switch something on, wrong ones, and those of each platform.
func valuesForHelm3(t *testing.T) map[string]map[string]any {
	t.Helper()
	values := map[string]map[string]any{"none": nil}
	texts := map[string]string{
		"all":   `{controller: {enabled: true}, monitoring: {podMonitor: true, prometheusRule: true, dashboard: true}, metrics: {address: "0.0.0.0:9770"}, resourceQuota: {create: true}, scc: {create: true}, safeMode: true, tolerations: [], extraEnv: [{name: A, value: "b: c"}]}`,
		"wrong": `{minReadySeconds: soon}`,
	}
	files, err := filepath.Glob(filepath.Join(folder, "platforms", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.Base(file)] = string(text)
	}
	for name, text := range texts {
		var v map[string]any
		if err := yaml.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(name, err)
		}
		values[name] = v
	}
	return values
}
