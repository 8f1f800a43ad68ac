package ladder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"temper.dev/temper/lab/plan"
)

// workload is a user's own services. They run from before the first arm to the last; one that ends is started again for the
// next window.
type workload struct {
	*plan.Workload
	running map[string]*running // by the service's name
	started bool                // a service was, and the client has not asked it yet
}

// running is a service under way, or one that has ended.
type running struct {
	ended chan struct{} // closed when it has
	how   error
}

// lost is why a window has no figures, though the ladder can go on.
type lost struct{ reason string }

func (e *lost) Error() string { return e.reason }

func (w *workload) background() worker {
	if w.Background == nil {
		return spinner
	}
	b := w.Background
	return worker{program: "work", words: append([]string{b.Count, b.Counter}, b.Command...), environment: b.Environment, command: true}
}

// threads: arms that have to know them are refused.
func (*workload) threads() string { return "" }

func (w *workload) calibrate(ctx context.Context, l *ladder) (float64, error) {
	if err := writeFile(l.cgroup("critical/cgroup.subtree_control"), "+cpu"); err != nil {
		return 0, err
	}
	w.running = map[string]*running{}
	for _, s := range w.Services {
		if err := os.Mkdir(l.cgroup("critical/"+s.Name), 0o755); err != nil {
			return 0, err
		}
	}
	if w.Background != nil { // one that does not start is told at once
		_, stop, err := l.startBackground(ctx, w.background(), 1, l.CPUs)
		if err != nil {
			return 0, err
		}
		stop()
	}
	l.rate = w.Rate
	saturation := 0.0
	if w.Rate == 0 {
		if err := w.start(ctx, l); err != nil {
			return 0, err
		}
		figures, err := w.ask(ctx, l, 0, l.WarmUp/2, l.WarmUp/2, l.Seed)
		if err != nil {
			return 0, err
		}
		if saturation = figures["saturation_rps"]; saturation == 0 {
			return 0, fmt.Errorf("the services answered nothing within %g s", l.WarmUp/2)
		}
		l.rate = l.Load * saturation
	}
	_, err := w.load(ctx, l, 0, l.WarmUp, l.Seed)
	return saturation, err
}

func (w *workload) load(ctx context.Context, l *ladder, warmUp, seconds float64, seed int64) (map[string]float64, error) {
	if err := w.start(ctx, l); err != nil {
		return nil, &lost{err.Error()}
	}
	figures, err := w.ask(ctx, l, l.rate, warmUp, seconds, seed)
	for _, s := range w.Services {
		if r := w.running[s.Name]; r.over() {
			return nil, &lost{fmt.Sprintf("service %s has ended (%s)%s", s.Name, describeEnd(r.how), l.lastWords(s.Name))}
		}
	}
	if err != nil {
		return nil, &lost{err.Error()}
	}
	return figures, nil
}

// ask has the client offer a rate, or with rate 0 as much as is answered.
func (w *workload) ask(ctx context.Context, l *ladder, rate, warmUp, seconds float64, seed int64) (map[string]float64, error) {
	if w.Client.Command != nil {
		return l.runClientCommand(ctx, *w.Client.Command, rate, seconds, seed)
	}
	last := l.CPUs + plan.GeneratorCPUs(l.CPUs) - 1
	words := []any{w.Client.Port(), rate, warmUp, seconds, seed, bit(l.Bursty), l.CPUs, last, l.latencyFile()}
	prepare := bit(w.started)
	switch c := w.Client; {
	case c.HTTP != nil:
		words = append(words, c.HTTP.Connections, prepare, c.HTTP.Host, c.HTTP.Target)
	case c.Redis != nil:
		words = append(words, c.Redis.Connections, prepare, c.Redis.Keys, c.Redis.ValueSize, c.Redis.Writes)
	case c.Postgres != nil:
		words = append(words, c.Postgres.Connections, prepare, c.Postgres.User, c.Postgres.Database, c.Postgres.Setup, c.Postgres.Query, c.Postgres.Keys)
	}
	figures, err := l.runClient(ctx, w.Client.Program(), words...)
	if err == nil {
		w.started = false
	}
	return figures, err
}

// runClient is runGenerator, with what the client said in its error.
func (l *ladder) runClient(ctx context.Context, name string, args ...any) (map[string]float64, error) {
	cmd, err := l.command(ctx, name, args...)
	if err != nil {
		return nil, err
	}
	var said bytes.Buffer
	cmd.Stderr = io.MultiWriter(l.Log, &said)
	figures, err := figuresOf(cmd, name)
	if err != nil && said.Len() > 0 {
		err = errors.New(strings.TrimSpace(said.String()))
	}
	return figures, err
}

// start starts, one after the other, the services that do not run.
func (w *workload) start(ctx context.Context, l *ladder) error {
	for _, s := range w.Services {
		if r := w.running[s.Name]; r != nil && !r.over() {
			continue
		}
		r, err := l.startService(ctx, s)
		if err != nil {
			return fmt.Errorf("service %s: %w", s.Name, err)
		}
		w.running[s.Name], w.started = r, true
		if err := l.awaitService(ctx, s, r); err != nil {
			return fmt.Errorf("service %s: %w%s", s.Name, err, l.lastWords(s.Name))
		}
	}
	return nil
}

func (l *ladder) startService(ctx context.Context, s plan.Service) (*running, error) {
	if s.Port != 0 && listens(s.Port) {
		return nil, fmt.Errorf("port %d is in use before it has started; choose another", s.Port)
	}
	var args []any
	for _, word := range s.Command[1:] {
		args = append(args, word)
	}
	cmd, err := l.serviceCommand(ctx, s.Command[0], args...)
	if err != nil {
		return nil, err
	}
	log, err := os.Create(l.logOf(s.Name))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Dir = filepath.Join(plan.ServicesFolder, s.Name)
	cmd.Env = append(cmd.Env, s.Environment...)
	if s.AsUser {
		cmd.SysProcAttr.Credential = serviceUser
	}
	if err := l.startIn("critical/"+s.Name, cmd); err != nil {
		return nil, err
	}
	r := &running{ended: make(chan struct{})}
	go func() {
		r.how = cmd.Wait()
		close(r.ended)
	}()
	return r, nil
}

// mostStart is how long a service may take until it takes connections, in guest time.
const mostStart = 60 * time.Second

// awaitService returns once the service takes connections. A server that has just been started offers no event to wait for.
func (l *ladder) awaitService(ctx context.Context, s plan.Service, r *running) error {
	if s.Port == 0 {
		return nil
	}
	for deadline := time.Now().Add(mostStart); !listens(s.Port); {
		if time.Now().After(deadline) {
			return fmt.Errorf("it does not listen on port %d of 127.0.0.1 after %s; correct the port or its settings", s.Port, mostStart)
		}
		select {
		case <-r.ended:
			return fmt.Errorf("it ended before it listened on port %d (%s)", s.Port, describeEnd(r.how))
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}

func listens(port int) bool {
	c, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(port))
	if err != nil {
		return false
	}
	c.Close()
	return true
}

func (r *running) over() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

func describeEnd(err error) string {
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return failed.String()
	}
	if err != nil {
		return err.Error()
	}
	return "exit status 0; a service stays in the foreground"
}

func (l *ladder) logOf(service string) string { return filepath.Join(l.Dir, service+".log") }

// lastWords quotes the end of what a service has said.
func (l *ladder) lastWords(service string) string {
	text, err := os.ReadFile(l.logOf(service))
	if err != nil {
		return lastLines("")
	}
	return lastLines(string(text))
}

// lastLines quotes the end of what a program has said.
func lastLines(said string) string {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	if lines[0] == "" {
		return "; it said nothing"
	}
	const most = 5
	return "; it said: " + strings.Join(lines[max(0, len(lines)-most):], " | ")
}
