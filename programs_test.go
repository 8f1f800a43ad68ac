//go:build object

package temper

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"testing"

	"temper.dev/temper/internal/base/exit"
)

// programs are those that 'make' has built, with what makes them say which version they are.
var programs = map[string]string{
	"bin/temper":            "version",
	"bin/temper-lab":        "version",
	"bin/kubectl-temper":    "version",
	"bin/temper-agent":      "--version",
	"bin/temper-controller": "--version",
	"bin/scx_temper":        "--version",
}

var identity = regexp.MustCompile(`^version +(\S+)\ncommit +(\S+)\nobject +(\S+)\n`)

func TestProgramsAreOfOneBuild(t *testing.T) {
	object, err := os.ReadFile("build/temper.bpf.o")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(object)
	hash := hex.EncodeToString(sum[:])
	commits := map[string]string{}
	for program, argument := range programs {
		out, err := exec.Command(program, argument).CombinedOutput()
		if err != nil {
			t.Errorf("%s %s: %v: %s", program, argument, err, out)
			continue
		}
		m := identity.FindStringSubmatch(string(out))
		if m == nil || m[1] != Version || m[3] != hash {
			t.Errorf("%s is not of version %s with object %s:\n%s", program, Version, hash, out)
			continue
		}
		commits[m[2]] = program
	}
	if len(commits) > 1 {
		t.Errorf("of different commits: %v", commits)
	}
}

// What a program was asked to say, and could not, is a failure.
func TestLostOutputIsAFailure(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	for program, argument := range programs {
		for _, argument := range []string{argument, "--help"} {
			cmd := exec.Command(program, argument)
			cmd.Stdout = full
			if err := cmd.Run(); cmd.ProcessState.ExitCode() != exit.Failed {
				t.Errorf("%s %s: %v; want status %d", program, argument, err, exit.Failed)
			}
		}
	}
}

// On a node every megabyte is loaded, and audited. Decision 66 says what the bar keeps out.
func TestProgramsAreSmall(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the bars are for amd64")
	}
	for program, bar := range map[string]int64{"bin/temper": 10_000_000} {
		file, err := os.Stat(program)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s has %d bytes, its bar is %d", program, file.Size(), bar)
		if file.Size() > bar {
			t.Errorf("%s has %d bytes, want %d or fewer: leave out what a node does not need. Build ./cmd/%s without -s, once with this change "+
				"and once without, and compare what 'go tool nm -size -sort size' says of both; see docs/decisions/0066-ten-megabytes.md",
				program, file.Size(), bar, filepath.Base(program))
		}
	}
}
