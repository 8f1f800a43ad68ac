// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// commands are the lines of docs/start/pathfence-go.md that stand to be copied.
func commands(t *testing.T) []string {
	page, err := os.ReadFile("../../../docs/start/pathfence-go.md")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(page)) {
		if command, is := strings.CutPrefix(strings.TrimRight(line, "\n"), "    "); is {
			lines = append(lines, command)
		}
	}
	return lines
}

// The page is run as it stands, but for the port, and for what changes the module of one's own.
func TestThePageDoesWhatItSays(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	lines := commands(t)
	run, others := lines[0], lines[1:]
	if run != "go run ./pathfence/examples/go" {
		t.Fatalf("the page begins with %q: this test does not know that", run)
	}
	shop := filepath.Join(t.TempDir(), "shop")
	if out, err := exec.Command("go", "build", "-C", root, "-o", shop, "./pathfence/examples/go").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	address := serveThere(t, shop)

	var script strings.Builder
	for _, line := range others {
		if !strings.HasPrefix(line, "go mod edit ") {
			script.WriteString(strings.ReplaceAll(line, "localhost:8080", address) + "\n")
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "bash", "-c", "set -e; curl() { command curl -sS --fail-with-body \"$@\"; }\n"+script.String()).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	took := regexp.MustCompile(`200 after ([0-9.]+) s`).FindAllStringSubmatch(string(out), -1)
	if len(took) != 2 {
		t.Fatalf("the item is answered %d times, want twice: %s", len(took), out)
	}
	without, _ := strconv.ParseFloat(took[0][1], 64)
	with, _ := strconv.ParseFloat(took[1][1], 64)
	if with >= without {
		t.Errorf("the item takes %v s with the fence, %v without", with, without)
	}
}

// serveThere starts the shop, and gives its address once it can be asked.
func serveThere(t *testing.T, shop string) (address string) {
	free, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	address = free.Addr().String()
	free.Close()
	cmd := exec.Command(shop, "-listen", address)
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("the shop does not end as it should: %v", err)
		}
	})
	said := make([]byte, 200)
	if n, err := log.Read(said); err != nil || !strings.Contains(string(said[:n]), "the shop is at http://"+address) {
		t.Fatalf("the shop says %q, %v", said[:n], err)
	}
	return address
}
