package ladder

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"temper.dev/temper/lab/plan"
)

func TestServicesThatDoNotStart(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free.Close()
	used, unused := taken.Addr().(*net.TCPAddr).Port, free.Addr().(*net.TCPAddr).Port
	l := &ladder{Site: Site{Dir: t.TempDir()}}
	if err := os.WriteFile(l.logOf("front"), []byte(strings.Repeat("early\n", 9)+"no space\nbye\n"), 0o644); err != nil {
		t.Fatal(err)
	}

	_, err = l.startService(t.Context(), plan.Service{Name: "front", Command: []string{"/none"}, Port: used})
	if want := fmt.Sprintf("port %d is in use before it has started; choose another", used); err == nil || err.Error() != want {
		t.Errorf("a port in use: got %v, want %s", err, want)
	}
	ended := &running{ended: make(chan struct{}), how: exec.Command("sh", "-c", "exit 7").Run()}
	close(ended.ended)
	err = l.awaitService(t.Context(), plan.Service{Name: "front", Port: unused}, ended)
	if want := fmt.Sprintf("it ended before it listened on port %d (exit status 7)", unused); err == nil || err.Error() != want {
		t.Errorf("a service that ends: got %v, want %s", err, want)
	}
	if got, want := l.lastWords("front"), "; it said: early | early | early | no space | bye"; got != want {
		t.Errorf("last words: got %q, want %q", got, want)
	}
	if got, want := l.lastWords("store"), "; it said nothing"; got != want {
		t.Errorf("last words: got %q, want %q", got, want)
	}
	runs := &running{ended: make(chan struct{})}
	if err := l.awaitService(t.Context(), plan.Service{Name: "front", Port: used}, runs); err != nil {
		t.Errorf("a service that listens: %v", err)
	}
	if !ended.over() || runs.over() {
		t.Errorf("over: %v and %v, want true and false", ended.over(), runs.over())
	}
}

func TestHowAServiceEnded(t *testing.T) {
	for want, err := range map[string]error{
		"exit status 0; a service stays in the foreground": nil,
		"exit status 7":   exec.Command("sh", "-c", "exit 7").Run(),
		"signal: killed":  exec.Command("sh", "-c", "kill -9 $$").Run(),
		"something other": errors.New("something other"),
	} {
		if got := describeEnd(err); got != want {
			t.Errorf("%v: got %q, want %q", err, got, want)
		}
	}
}
