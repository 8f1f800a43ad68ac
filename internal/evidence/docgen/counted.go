package docgen

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"temper.dev/temper/lab/chaos"
	"temper.dev/temper/lab/cost"
	"temper.dev/temper/lab/limits"
	"temper.dev/temper/lab/observed"
)

// Costs is what the records of 'temper-lab cost' in a folder say, as that command prints them.
func Costs(dir string) (string, error) {
	text, err := printed(dir, cost.Write)
	return "# What scheduling costs\n" + notice + "Instructions, counted on the deterministic machine beside other schedulers in one boot (`temper-lab cost`). " +
		"Why so: [decision 15](../decisions/0015-counted-beside-others.md).\n" + text, err
}

// Observed is what the records of 'temper-lab observe' in a folder say, as that command prints them.
func Observed(dir string) (string, error) {
	text, err := printed(dir, observed.Write)
	return "# Seen from outside\n" + notice + "Whether background ran where critical work waited, and what it had of the rest, by the kernel's own events " +
		"(`temper-lab observe`). What the figures are held to: [decision 18](../decisions/0018-what-the-observer-is-held-to.md).\n" + text, err
}

// Limits is what the records of 'temper-lab limits' in a folder say, as that command prints them.
func Limits(dir string) (string, error) {
	text, err := printed(dir, limits.Write)
	return "# Services under a CPU limit\n" + notice + "What a service that is held to a CPU limit uses, gets done, and how late it answers, where the kernel keeps the limit " +
		"and where Temper does (`temper-lab limits`). How Temper does: [decision 22](../decisions/0022-a-bucket-and-turns.md) and [29](../decisions/0029-a-ledger-of-ten-periods.md); what that costs: [decision 32](../decisions/0032-what-throughput-under-a-limit-costs.md).\n" + text, err
}

// Attacks is the page of what 'temper-lab chaos' has shown.
func Attacks(dir string) (string, error) {
	text, err := printed(dir, chaos.WriteSummary)
	return "# Attacks\n" + notice + "What attacks on the scheduler have shown: `temper-lab chaos`, of which `--help` says what is done and what is checked; " +
		"`make chaos` and `make soak` repeat them. What they found, and what became of it: [decision 11](../decisions/0011-what-the-attacks-showed.md).\n" + text, err
}

// printed prints every record in a folder, each under its name.
func printed[T any](dir string, write func(io.Writer, T) error) (string, error) {
	var b strings.Builder
	err := each(dir, func(name string, record T) error {
		var table strings.Builder
		if err := write(&table, record); err != nil {
			return err
		}
		fmt.Fprintf(&b, "\n## %s\n%s", name, fence(table.String()))
		return nil
	})
	return b.String(), err
}

// each reads every record in a folder, in the order of their names.
func each[T any](dir string, visit func(name string, record T) error) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var record T
		if err := json.Unmarshal(text, &record); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := visit(strings.TrimSuffix(filepath.Base(file), ".json"), record); err != nil {
			return err
		}
	}
	return nil
}
