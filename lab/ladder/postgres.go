package ladder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"temper.dev/temper/lab/plan"
)

// postgres is the distribution's, with pgbench's simple updates on a database in memory.
type postgres struct{}

const (
	postgresData  = "/tmp/postgres"
	postgresStart = 2 * time.Minute // guest time
	pgbenchPrefix = "/tmp/transactions"
)

// settings that PostgreSQL would take from its installation; and none of what would come at moments of its own:
// autovacuum, checkpoints, and new log segments filled with zeros, for which everybody seems to have stood still for 0.3 s.
var postgresSettings = []string{
	"unix_socket_directories=/tmp", "listen_addresses=", "dynamic_shared_memory_type=mmap", "jit=off",
	"max_connections=64", "shared_buffers=64MB", "timezone=GMT", "log_timezone=GMT",
	"autovacuum=off", "checkpoint_timeout=1h", "wal_init_zero=off",
}

func (postgres) program(name string) string { return plan.PostgresPrograms + "/" + name }

func (s postgres) start(ctx context.Context, l *ladder) error {
	if _, err := l.runDatabaseTool(ctx, nil, s.program("initdb"), "-D", postgresData, "--no-locale", "-E", "UTF8", "-U", "postgres", "--no-sync"); err != nil {
		return err
	}
	words := []any{"-D", postgresData}
	for _, setting := range postgresSettings {
		words = append(words, "-c", setting)
	}
	if err := l.startDatabase(ctx, s.program("postgres"), words...); err != nil {
		return err
	}
	if err := s.awaitReady(); err != nil {
		return err
	}
	_, err := l.runDatabaseTool(ctx, nil, s.program("pgbench"), "-h", "/tmp", "-U", "postgres", "-i", "-q", "postgres")
	return err
}

// awaitReady waits until the server says in its file that it takes connections.
func (postgres) awaitReady() error {
	for deadline := time.Now().Add(postgresStart); ; time.Sleep(10 * time.Millisecond) {
		text, err := os.ReadFile(filepath.Join(postgresData, "postmaster.pid"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if lines := strings.Split(string(text), "\n"); len(lines) > 7 && strings.TrimSpace(lines[7]) == "ready" {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("it is not ready within %s", postgresStart)
		}
	}
}

func (s postgres) ask(ctx context.Context, l *ladder, a asked) (answers, error) {
	old, err := filepath.Glob(pgbenchPrefix + ".*")
	if err != nil {
		return answers{}, err
	}
	for _, file := range old {
		if err := os.Remove(file); err != nil {
			return answers{}, err
		}
	}
	args := []any{"-h", "/tmp", "-U", "postgres", "-n", "-b", "simple-update", "-M", "prepared", "-c", a.clients, "-j", 1,
		"-T", int(a.warmUp + a.seconds + 0.5), "-l", "--log-prefix=" + pgbenchPrefix, "--random-seed=" + strconv.FormatInt(a.seed, 10)}
	if a.rate > 0 {
		args = append(args, "-R", fmt.Sprintf("%.3f", a.rate))
	}
	begin := time.Now().Add(time.Duration(a.warmUp * float64(time.Second)))
	if _, err := l.runDatabaseTool(ctx, nil, s.program("pgbench"), append(args, "postgres")...); err != nil {
		return answers{}, err
	}
	log, err := s.transactions()
	if err != nil {
		return answers{}, err
	}
	end := begin.Add(time.Duration(a.seconds * float64(time.Second)))
	h, last, err := readTransactions(log, begin, end)
	got := answers{Histogram: h}
	// It takes them one after the other as they are due, and drops those that are left when its time is over.
	if a.rate > 0 && last.Before(end) {
		got.lacks = fmt.Sprintf("pgbench came no further than to what was due %v before the window's end", end.Sub(last))
	}
	return got, err
}

// transactions is what pgbench has logged.
func (postgres) transactions() (log []byte, err error) {
	files, err := filepath.Glob(pgbenchPrefix + ".*")
	for _, file := range files {
		text, readErr := os.ReadFile(file)
		if err = cmp.Or(err, readErr); err != nil {
			break
		}
		log = append(log, text...)
	}
	return log, err
}

// readTransactions reads what pgbench logs: client, number, latency in us from when the transaction was due, script, and
// when it ended, in seconds and us. It returns the latencies of those that were due between two times, and when the last
// of all was due.
func readTransactions(log []byte, begin, end time.Time) (h *hdrhistogram.Histogram, last time.Time, err error) {
	h = newLatencies()
	for line := range strings.Lines(string(log)) {
		var client, number, latency, script, second, us int64
		if _, err := fmt.Sscan(line, &client, &number, &latency, &script, &second, &us); err != nil {
			return nil, last, fmt.Errorf("pgbench logged %q: %w", line, err)
		}
		due := time.Unix(second, (us-latency)*1000)
		if due.After(last) {
			last = due
		}
		if due.Before(begin) || !due.Before(end) {
			continue
		}
		if err := h.RecordValue(latency * 1000); err != nil {
			return nil, last, err
		}
	}
	return h, last, nil
}
