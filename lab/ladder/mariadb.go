package ladder

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"

	"temper.dev/temper/lab/plan"
)

// mariadb is the distribution's, in memory, with sysbench's oltp_read_write: 20 queries a transaction.
type mariadb struct{}

const (
	mariadbData   = "/tmp/mariadb"
	mariadbSocket = mariadbData + "/socket"
)

// mariadbSettings are for a database of some MB on a machine that has nothing but memory.
var mariadbSettings = []any{
	"--no-defaults", "--datadir=" + mariadbData, "--skip-networking", "--socket=" + mariadbSocket, "--skip-grant-tables",
	"--innodb-buffer-pool-size=64M", "--innodb-log-file-size=16M", "--innodb-use-native-aio=0", "--performance-schema=0",
}

// sysbenchDatabase is what the load is done to.
var sysbenchDatabase = []any{
	"oltp_read_write", "--db-driver=mysql", "--mysql-socket=" + mariadbSocket, "--mysql-user=root", "--mysql-db=sbtest",
	"--tables=1", "--table-size=10000",
}

func (s mariadb) start(ctx context.Context, l *ladder) error {
	if err := os.Mkdir(mariadbData, 0o700); err != nil {
		return err
	}
	if err := os.Chown(mariadbData, plan.ServiceUser, plan.ServiceUser); err != nil {
		return err
	}
	tables, err := s.systemTables()
	if err != nil {
		return err
	}
	if _, err := l.runDatabaseTool(ctx, tables, "mariadbd", append(mariadbSettings, "--bootstrap")...); err != nil {
		return err
	}
	if err := l.startDatabase(ctx, plan.MariaDBProgram, mariadbSettings...); err != nil {
		return err
	}
	if err := awaitListener("unix", mariadbSocket); err != nil {
		return err
	}
	_, err = l.runDatabaseTool(ctx, nil, "sysbench", append(sysbenchDatabase, "prepare")...)
	return err
}

// systemTables is what mariadb-install-db has the server read, but for what is about users and help.
func (mariadb) systemTables() (io.Reader, error) {
	script := "create database mysql;\nuse mysql;\n"
	for _, file := range plan.MariaDBTables {
		text, err := os.ReadFile("/" + file)
		if err != nil {
			return nil, err
		}
		script += string(text)
	}
	return strings.NewReader(script + "\ncreate database sbtest;\n"), nil
}

// ask counts by sysbench's own histogram, whose bars are 2 % wide. With a rate, latencies count from when a transaction
// was due.
func (mariadb) ask(ctx context.Context, l *ladder, a asked) (answers, error) {
	args := append(sysbenchDatabase, "--threads="+fmt.Sprint(a.clients), "--histogram", "--rand-seed="+fmt.Sprint(a.seed),
		// What was counted until then is printed, and forgotten.
		"--report-checkpoints="+fmt.Sprint(a.warmUp), "--time="+fmt.Sprint(a.warmUp+a.seconds))
	if a.rate > 0 {
		args = append(args, fmt.Sprintf("--rate=%.0f", a.rate), "--report-interval=1")
	}
	text, err := l.runDatabaseTool(ctx, nil, "sysbench", append(args, "run")...)
	if err != nil {
		return answers{}, err
	}
	h, err := readSysbench(text)
	got := answers{Histogram: h}
	if waiting := sysbenchQueue(text); waiting > a.clients {
		got.lacks = fmt.Sprintf("%d transactions were due and not begun when sysbench ended", waiting)
	}
	return got, err
}

// sysbenchQueue is how many transactions waited for a thread when sysbench last reported it, which it does with a rate.
func sysbenchQueue(text string) (waiting int) {
	const report = "queue length: "
	if at := strings.LastIndex(text, report); at >= 0 {
		_, _ = fmt.Sscanf(text[at:], report+"%d", &waiting)
	}
	return waiting
}

// readSysbench reads the last histogram that sysbench has printed: a bar's value in ms, the bar, and how many
// transactions it has.
func readSysbench(text string) (*hdrhistogram.Histogram, error) {
	const title = "Latency histogram (values are in milliseconds)"
	at := strings.LastIndex(text, title)
	if at < 0 {
		return nil, fmt.Errorf("sysbench printed no histogram: %q", text)
	}
	h := newLatencies()
	lines := strings.Split(text[at:], "\n")
	for _, line := range lines[2:] {
		if strings.TrimSpace(line) == "" {
			break
		}
		value, rest, isBar := strings.Cut(line, "|")
		var ms float64
		var n int64
		if _, err := fmt.Sscan(value, &ms); err != nil || !isBar {
			return nil, fmt.Errorf("sysbench printed %q in its histogram", line)
		}
		if _, err := fmt.Sscan(strings.TrimLeft(rest, "*"), &n); err != nil {
			return nil, fmt.Errorf("sysbench printed %q in its histogram", line)
		}
		if err := h.RecordValues(int64(ms*1e6), n); err != nil {
			return nil, err
		}
	}
	return h, nil
}
