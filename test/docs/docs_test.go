// Package docs tests that the documents are short, lead somewhere, and say what the code and the records say.
package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"temper.dev/temper/internal/evidence/bench"
	"temper.dev/temper/internal/evidence/docgen"
	"temper.dev/temper/internal/evidence/docgen/docgentest"
	"temper.dev/temper/internal/node/status"
	"temper.dev/temper/lab/survey"
)

const repository = "../.."

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, path))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// generated is every document that follows from something else than a program's commands, by path.
func generated(t *testing.T) map[string]string {
	t.Helper()
	loader, err := docgen.Loader(readFile(t, "sched/options.c"))
	if err != nil {
		t.Fatal("sched/options.c:", err)
	}
	summary, err := docgen.Records(filepath.Join(repository, "records"))
	if err != nil {
		t.Fatal(err)
	}
	kernels, err := survey.Read(filepath.Join(repository, "records/kernels.json"))
	if err != nil {
		t.Fatal(err)
	}
	const stock, page = "docs/stock.md", "docs/figures.md"
	figures, err := docgen.Fill(readFile(t, stock), "figures", docgen.Stock(summary, "img/chain.svg", "figures.md"))
	if err != nil {
		t.Fatal(stock+":", err)
	}
	const headline = "docs/img/headline.svg"
	block, err := docgen.Headline(summary, filepath.Join(repository, "records/cost"), headline, "docs/stock.md")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := docgen.Fill(readFile(t, "README.md"), "figures", block)
	if err != nil {
		t.Fatal("README.md:", err)
	}
	files := map[string]string{
		"docs/reference/scx_temper.md":    loader,
		"docs/reference/kernels.md":       docgen.Kernels(kernels),
		"docs/reference/paths.md":         docgen.Paths(),
		"docs/reference/metrics.md":       docgen.Metrics(status.Metrics()),
		"docs/reference/configuration.md": docgen.Configuration(readFile(t, "packaging/temper.yaml")),
		"README.md":                       readme,
		stock:                             figures,
	}
	if files["docs/reference/headers.md"], err = docgen.Headers(headers(t)); err != nil {
		t.Fatal(err)
	}
	if files["docs/reference/costs.md"], err = docgen.Costs(filepath.Join(repository, "records/cost")); err != nil {
		t.Fatal(err)
	}
	if files["docs/reference/limits.md"], err = docgen.Limits(filepath.Join(repository, "records/limits")); err != nil {
		t.Fatal(err)
	}
	if files["docs/reference/attacks.md"], err = docgen.Attacks(filepath.Join(repository, "records/chaos")); err != nil {
		t.Fatal(err)
	}
	if files["docs/reference/observed.md"], err = docgen.Observed(filepath.Join(repository, "records/observed")); err != nil {
		t.Fatal(err)
	}
	if files["docs/reference/peers.md"], err = docgen.Peers(filepath.Join(repository, "records", docgen.PeersFolder)); err != nil {
		t.Fatal(err)
	}
	if summary == nil {
		return files
	}
	for picture, pool := range map[string]*bench.Pooled{"docs/img/chain.svg": docgen.Shown(summary), headline: docgen.Headlined(summary)} {
		if files[picture], err = docgen.Picture(pool); err != nil {
			t.Fatal(err)
		}
	}
	if files[page], err = docgen.Page(summary); err != nil {
		t.Fatal(err)
	}
	return files
}

// headers are those of the scheduler, by path.
func headers(t *testing.T) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(repository, "sched", "*.bpf.h"))
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	texts := map[string][]byte{}
	for _, path := range paths {
		name := "sched/" + filepath.Base(path)
		texts[name] = readFile(t, name)
	}
	return texts
}

func TestGeneratedDocsAreUpToDate(t *testing.T) { docgentest.Check(t, repository, generated(t)) }

func TestEveryExitStatusIsDocumented(t *testing.T) {
	want := docgen.Statuses(readFile(t, "sched/intf.h"))
	got := docgen.DocumentedStatuses(readFile(t, "docs/operations.md"))
	if len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("docs/operations.md explains the statuses %v, sched/intf.h has %v", got, want)
	}
}

var (
	code     = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#+ (.+)$`)
	unlinked = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// TestLinksLeadSomewhere follows the links of all documents, to files and to headings.
func TestLinksLeadSomewhere(t *testing.T) {
	pages := documents(t)
	for _, page := range []string{"README.md", "docs/stock.md", "pathfence/README.md", ".github/pull_request_template.md"} {
		if !slices.Contains(pages, page) {
			t.Errorf("%s is not among the documents", page)
		}
	}
	for _, page := range pages {
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(string(readFile(t, page)), ""), -1) {
			path, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(path, "://") {
				continue
			}
			target := page
			if path != "" {
				target = filepath.Join(filepath.Dir(page), path)
			}
			if _, err := os.Stat(filepath.Join(repository, target)); err != nil {
				t.Errorf("%s links to %s: %v", page, m[1], err)
			} else if anchor != "" && !slices.Contains(anchors(readFile(t, target)), anchor) {
				t.Errorf("%s links to %s, and there is no such heading", page, m[1])
			}
		}
	}
}

// documents are all of the repository, by path; what is built has none.
func documents(t *testing.T) []string {
	t.Helper()
	var pages []string
	err := filepath.WalkDir(repository, func(path string, entry os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{".git", "bin", "build", "target"}, entry.Name()):
			return filepath.SkipDir
		case filepath.Ext(path) == ".md":
			page, err := filepath.Rel(repository, path)
			pages = append(pages, filepath.ToSlash(page))
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

// anchors are the names that renderers give to a page's headings.
func anchors(page []byte) []string {
	var all []string
	for _, m := range heading.FindAllStringSubmatch(string(page), -1) {
		all = append(all, strings.ReplaceAll(unlinked.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return all
}

// The threat model's table of what a user can reach has a row for each trick that a test measures, and no other.
func TestThreatModelHasEachTrick(t *testing.T) {
	_, section, found := strings.Cut(string(readFile(t, "docs/threat-model.md")), "\n## What a user can reach\n")
	if !found {
		t.Fatal("docs/threat-model.md has no such section")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var rows, tricks []string
	named := regexp.MustCompile("\\(`([a-z-]+)`(?:, `([a-z-]+)`)?\\)")
	for line := range strings.Lines(section) {
		cells := strings.Split(line, " | ") // a trick's names stand in the first
		for _, names := range named.FindAllStringSubmatch(cells[0], -1) {
			rows = append(rows, slices.DeleteFunc(names[1:], func(name string) bool { return name == "" })...)
		}
	}
	for _, row := range regexp.MustCompile(`(?m)^\t\{(?:trick: )?"([a-z-]+)",`).FindAllSubmatch(readFile(t, "test/guest/reach_test.go"), -1) {
		if name := string(row[1]); name != "spin" {
			tricks = append(tricks, name)
		}
	}
	slices.Sort(rows)
	slices.Sort(tricks)
	if rows, tricks = slices.Compact(rows), slices.Compact(tricks); len(tricks) == 0 || !slices.Equal(rows, tricks) {
		t.Errorf("the document has %q, the test %q", rows, tricks)
	}
}
