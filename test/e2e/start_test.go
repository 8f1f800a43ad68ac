//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const (
	repository = "../.."
	startPage  = "docs/start/kubernetes.md"
	example    = "docs/start/shop.yaml"
	mostOnPage = 6
)

// pageCommands are what the start page has its reader type on the way there, in order.
func pageCommands() (commands []string, err error) {
	page, err := os.ReadFile(filepath.Join(repository, startPage))
	if err != nil {
		return nil, err
	}
	way, _, _ := strings.Cut(string(page), "\n## Undo")
	for line := range strings.Lines(way) {
		command, indented := strings.CutPrefix(strings.TrimRight(line, "\n"), "    ")
		if indented && strings.Contains(" make kubectl ctr helm ", " "+strings.SplitN(command, " ", 2)[0]+" ") {
			commands = append(commands, command)
		}
	}
	return commands, nil
}

// pageCommand is the one that begins so.
func pageCommand(begin string) (string, error) {
	commands, err := pageCommands()
	for _, c := range commands {
		if strings.HasPrefix(c, begin) {
			return c, nil
		}
	}
	return "", errors.Join(err, fmt.Errorf("%s has no command %q", startPage, begin))
}

// typed runs what a reader types, at the top of the repository.
func typed(t *testing.T, command string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", command)
	cmd.Dir = repository
	bin, err := filepath.Abs(filepath.Join(repository, "bin"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+*programs+":"+os.Getenv("PATH"), "KUBECONFIG="+plane.kubeconfig)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// The page's lines do what they say. What takes a network is done before, by the same lines: 'make', and Helm's by install().
func TestStartPage(t *testing.T) {
	awaitEnforced(t, "True")
	commands, err := pageCommands()
	if err != nil || len(commands) > mostOnPage {
		t.Fatalf("%d commands, %v; want %d at most: %q", len(commands), err, mostOnPage, commands)
	}
	text, err := os.ReadFile(filepath.Join(repository, example))
	if err != nil {
		t.Fatal(err)
	}
	ours := filepath.Join(t.TempDir(), "shop.yaml") // the node has no registry
	if err := os.WriteFile(ours, []byte(strings.ReplaceAll(string(text), "image: busybox:1.37", "image: "+image)), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, command := range commands {
		switch run := strings.ReplaceAll(command, example, ours); strings.Fields(command)[0] {
		case "make":
			targets, _, _ := strings.Cut(command, " && ")
			run = strings.Replace(targets, "make", "make -n", 1)
			fallthrough
		case "kubectl":
			if out, err := typed(t, run); err != nil {
				t.Fatalf("%s: %v\n%s", run, err, out)
			}
		case "ctr":
			imports, err := os.ReadFile("testdata/import")
			if begin := strings.TrimSuffix(command, " temper.tar"); err != nil || !strings.Contains(string(imports), begin) {
				t.Errorf("the node imports by another line than %q: %v", begin, err)
			}
		}
	}
	eventually(t, "both pods are in their tiers, in force", func() (bool, string) {
		out, err := typed(t, commands[len(commands)-1])
		return err == nil && inForce(out, "web", "critical") && inForce(out, "batch", "background"), out
	})
	if out, err := typed(t, "kubectl delete --wait=false -f "+ours); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// inForce tells whether a table of explain has a workload in a tier, in force.
func inForce(table, workload, tier string) bool {
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) > 2 && strings.Contains(fields[0], workload) && fields[1] == tier {
			return fields[len(fields)-1] == "yes"
		}
	}
	return false
}
