// Package internal has five planes (node, cluster, capacity, path, evidence) and what all stand on (base).
package internal

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "temper.dev/temper/"

// list runs 'go list', and returns its lines without the module's name; other modules' are left out.
func list(t *testing.T, args ...string) (names []string) {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %v: %v", args, err)
	}
	for line := range strings.Lines(string(out)) {
		if name, ours := strings.CutPrefix(strings.TrimSpace(line), module); ours {
			names = append(names, name)
		}
	}
	return names
}

func isIn(name string, folders ...string) bool {
	for _, folder := range folders {
		if strings.HasPrefix(name+"/", folder+"/") {
			return true
		}
	}
	return false
}

// A plane knows those below it only.
func TestPlanesStandOnEachOther(t *testing.T) {
	for plane, below := range map[string][]string{
		"base":     nil,
		"node":     {"internal/base"},
		"path":     {"internal/base", "pathfence/go"},
		"cluster":  {"internal/base", "internal/node", "internal/path", "packaging/kubernetes", "api"},
		"capacity": {"internal/base", "internal/cluster/policy", "internal/cluster/fleet", "internal/cluster/manifest", "packaging/kubernetes", "api"},
		// What plans for a cluster knows no client of it.
		"capacity/snapshot":   {"internal/base", "api"},
		"capacity/engine":     {"internal/capacity/snapshot"},
		"capacity/plan":       {"internal/base", "internal/capacity/engine", "internal/capacity/snapshot", "internal/cluster/policy", "api"},
		"capacity/overcommit": {"internal/base", "internal/capacity/snapshot", "internal/cluster/policy", "api"},
		"capacity/guard":      nil,
		"capacity/advice":     {"internal/base", "internal/capacity/plan", "internal/capacity/snapshot", "api"},
	} {
		t.Run(plane, func(t *testing.T) {
			own := "internal/" + plane
			imports := list(t, "-f", `{{join .Imports "\n"}}`, module+own+"/...")
			for _, name := range imports {
				if !isIn(name, append(below, own)...) {
					t.Errorf("it imports %s, want its own packages and those of %v", name, below)
				}
			}
		})
	}
}

// labPackages are those of the lab, the guest's side first: each knows those before it only.
var labPackages = []string{
	"plan", "ladder", "chaos", "guest",
	"limits", "cost", "observed", "survey", "listening", "workload",
	"cache", "assets", "libraries", "apt", "kernels", "userland", "image", "machine", "native", "nodeparts", "run",
}

func TestLabPackagesStandOnEachOther(t *testing.T) {
	place := func(name string) int {
		below, _ := strings.CutPrefix(name, "lab/")
		top, _, _ := strings.Cut(below, "/")
		return slices.Index(labPackages, top)
	}
	for _, name := range list(t, module+"lab/...") {
		own := place(name)
		if own < 0 && name != "lab" {
			t.Errorf("%s is not in the order of the lab's packages", name)
		}
		for _, other := range list(t, "-f", `{{join .Imports "\n"}}`, module+name) {
			if isIn(other, "lab") && place(other) > own {
				t.Errorf("%s imports %s, which comes after it in %v", name, other, labPackages)
			}
		}
	}
}

// What runs on production nodes and in clusters has nothing of the lab in it, nor of what reports measurements.
func TestProductionHasNoLab(t *testing.T) {
	for _, program := range []string{"temper", "temper-agent", "temper-controller", "kubectl-temper", "pathfence"} {
		t.Run(program, func(t *testing.T) {
			deps := list(t, "-deps", module+"cmd/"+program)
			if len(deps) == 0 {
				t.Error("it has no packages at all")
			}
			for _, name := range deps {
				if isIn(name, "lab", "internal/evidence") {
					t.Errorf("it has %s", name)
				}
			}
		})
	}
}
