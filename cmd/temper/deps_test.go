package main

import (
	"os/exec"
	"strings"
	"testing"
)

// What runs as root on production nodes has nothing of the lab in it, nor of what reports measurements.
func TestNothingOfTheLab(t *testing.T) {
	for _, program := range []string{"temper", "temper-agent", "kubectl-temper", "pathfence"} {
		t.Run(program, func(t *testing.T) {
			out, err := exec.Command("go", "list", "-deps", "temper.dev/temper/cmd/"+program).Output()
			if err != nil {
				t.Fatal(err)
			}
			for name := range strings.Lines(string(out)) {
				for _, folder := range []string{"lab", "internal/bench", "internal/demo", "internal/docgen"} {
					if path := "temper.dev/temper/" + folder; strings.HasPrefix(strings.TrimSpace(name)+"/", path+"/") {
						t.Errorf("it has %s", name)
					}
				}
			}
		})
	}
}
