package enforce

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/utils/cpuset"

	"temper.dev/temper/internal/node/config"
)

// TestMain lets this program play scx_temper, and an agent that dies.
func TestMain(m *testing.M) {
	switch os.Getenv("TEMPER_TEST_PLAY") {
	case "loader":
		playLoader(os.Args[1:])
	case "agent":
		playAgent()
	default:
		os.Exit(m.Run())
	}
}

// playLoader attaches and waits for a signal, or fails with the status that follows "fail".
func playLoader(args []string) {
	if len(args) > 1 && args[0] == "fail" {
		fmt.Println(`{"event":"error","status":7,"message":"/a has a finite cpu.max"}`)
		status, _ := strconv.Atoi(args[1])
		os.Exit(status)
	}
	if slices.Contains(args, "eject") {
		fmt.Println(`{"event":"exited","kind":1024,"exit_code":5,"reason":"runnable task stall","message":"s\u001bh[7]"}`)
		os.Exit(11)
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1, syscall.SIGTERM)
	fmt.Printf(`{"event":"attached","adopted":true,"pid":%d}`+"\n", os.Getpid())
	if <-signals == syscall.SIGUSR1 {
		fmt.Fprintln(os.Stderr, "handed over")
	}
	os.Exit(0)
}

// playAgent starts a loader, tells its parent, and waits to be killed.
func playAgent() {
	os.Setenv("TEMPER_TEST_PLAY", "loader")
	l, err := Start(os.Args[0], nil, os.Stderr)
	if err != nil {
		os.Exit(1)
	}
	<-l.Events()
	fmt.Println("ready")
	select {}
}

func startFake(t *testing.T, args ...string) *Loader {
	t.Helper()
	t.Setenv("TEMPER_TEST_PLAY", "loader")
	l, err := Start(os.Args[0], args, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// drain returns the outcome.
func drain(l *Loader) Outcome {
	for range l.Events() {
	}
	return l.Outcome()
}

func TestLoaderAttachesAndEnds(t *testing.T) {
	l := startFake(t)
	event := <-l.Events()
	if want := (Event{Event: EventAttached, Adopted: true, PID: l.PID()}); event != want {
		t.Errorf("got %+v, want %+v", event, want)
	}
	if err := l.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if o := drain(l); o.Status != 0 {
		t.Errorf("outcome %+v", o)
	}
	if err := l.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("a signal to what is gone: %v", err)
	}
}

func TestLoaderOutcomes(t *testing.T) {
	for _, c := range []struct {
		args   []string
		status int
		text   string
	}{
		{[]string{"fail", "7"}, 7, "/a has a finite cpu.max"},
		{[]string{"eject"}, 11, `the kernel says: runnable task stall ("s\x1bh[7]")`},
	} {
		if o := drain(startFake(t, c.args...)); o.Status != c.status || !strings.Contains(o.Text, c.text) {
			t.Errorf("%v: got %+v, want status %d and %q", c.args, o, c.status, c.text)
		}
	}
	l := startFake(t)
	<-l.Events()
	if err := l.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if o := drain(l); o.Status != 137 || !strings.Contains(o.Text, "signal 9") {
		t.Errorf("killed: %+v", o)
	}
}

func TestLoaderMissing(t *testing.T) {
	if _, err := Start("/nonexistent/scx_temper", nil, io.Discard); err == nil || !strings.Contains(err.Error(), "cannot start scx_temper") {
		t.Error(err)
	}
}

// TestLoaderHandsOverWhenTheAgentDies kills an agent and waits for what its loader says then.
func TestLoaderHandsOverWhenTheAgentDies(t *testing.T) {
	agent := exec.Command(os.Args[0])
	agent.Env = append(os.Environ(), "TEMPER_TEST_PLAY=agent")
	stdout, err := agent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := agent.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if err := agent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	said, err := io.ReadAll(stderr) // ends with the loader, the last to hold it
	if err != nil || string(said) != "handed over\n" {
		t.Errorf("the loader said %q, %v", said, err)
	}
	agent.Wait()
}

func TestArgs(t *testing.T) {
	cfg := &config.Config{Limits: config.LimitsGap, HeartbeatTimeout: 12 * time.Second, SystemShare: 30, Reservation: new(int64(2500)),
		Fence: cpuset.New(2, 3, 6), Loans: config.LoansIdle, SMT: config.SMTExclusive}
	want := []string{"--json", "--pin", "/pins", "--heartbeat-timeout", "12", "--system-share", "30", "--limits", "gap", "--reservation", "2.5",
		"--fence", "2-3,6", "--loans", "idle", "--smt", "exclusive"}
	if got := Args(cfg, "/pins"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestNeedsRestart(t *testing.T) {
	none := config.Config{Limits: config.LimitsGap}
	some, more, other := none, none, none
	some.Reservation, more.Reservation, other.SystemShare = new(int64(0)), new(int64(2500)), 30
	for name, c := range map[string]struct {
		running, wanted config.Config
		want            bool
	}{
		"the same configuration":        {none, none, false},
		"another reservation":           {some, more, false},
		"a reservation where none was":  {none, some, true},
		"no reservation where one was":  {more, none, true},
		"another share of the system's": {none, other, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := NeedsRestart(&c.running, &c.wanted); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
	if *more.Reservation != 2500 {
		t.Error("a comparison has changed what it compares")
	}
}
