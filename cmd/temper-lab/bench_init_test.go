package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/lab/listening"
	"temper.dev/temper/lab/workload"
)

// This process listens, as a service of the host does.
func TestBenchInit(t *testing.T) {
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	server := http.Server{Handler: http.NotFoundHandler()}
	go func() { _ = server.Serve(l) }()
	defer server.Close()
	port := l.Addr().(*net.TCPAddr).Port

	out, status, message := temperBench(t, "init", fmt.Sprint(port))
	if status != 0 || !strings.Contains(out, "It answered 404 to GET /") {
		t.Fatalf("left with %d, %q; want 0, and that it answers 404:\n%s", status, message, out)
	}
	file := filepath.Join(t.TempDir(), "f.yaml")
	if err := os.WriteFile(file, []byte(out), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := workload.Read(file)
	if err != nil {
		t.Fatalf("what is written is refused: %v\n%s", err, out)
	}
	if s := f.Services[0]; s.Port != port || s.Command[0] != this(t) {
		t.Errorf("it is %+v; want port %d and %s", s, port, this(t))
	}

	out, _, _ = temperBench(t, "init")
	if !strings.Contains(out, fmt.Sprintf("%d ", port)) {
		t.Errorf("the table lacks port %d:\n%s", port, out)
	}
	out, _, _ = temperBench(t, "init", "--json")
	var found listening.Found
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		t.Fatal(err)
	}
	for _, p := range found.Programs {
		if p.Port == port && p.PID == os.Getpid() {
			return
		}
	}
	t.Errorf("the JSON lacks port %d of process %d:\n%s", port, os.Getpid(), out)
}

// this is the test's own program.
func this(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestBenchInitRefuses(t *testing.T) {
	for _, c := range []struct {
		name, message string
		status        int
		args          []string
	}{
		{"what is no port", `"http" is no port; give a port, such as 8080`, exit.Usage, []string{"http"}},
		{"a port where nothing listens", "nothing listens on port 1 in this network namespace; see what does: temper-lab bench init", exit.NotFound, []string{"1"}},
		{"two ports", `"81" is one argument too many`, exit.Usage, []string{"80", "81"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, status, message := temperBench(t, append([]string{"init"}, c.args...)...)
			if status != c.status || !strings.Contains(message, c.message) {
				t.Errorf("left with %d, %q; want %d, %q", status, message, c.status, c.message)
			}
		})
	}
}
