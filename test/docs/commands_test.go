package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// commands are those of our programs by their words, as in "temper-lab bench compare", each with what its --help says.
func commands(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{"scx_temper": string(readFile(t, "docs/reference/scx_temper.md"))}
	for _, program := range []string{"temper", "temper-lab", "temper-agent", "temper-controller", "kubectl-temper", "pathfence"} {
		for _, section := range strings.Split(string(readFile(t, "docs/reference/"+program+".md")), "\n## ")[1:] {
			words, help, _ := strings.Cut(section, "\n")
			all[words] = help
		}
	}
	return all
}

var (
	inline     = regexp.MustCompile("`([^`\n]+)`")
	ours       = regexp.MustCompile(`^(?:\$ |sudo |(?:[A-Z]+=\S+ )+)*(?:(?:\S*/)?bin/)?(temper|temper-lab|temper-agent|temper-controller|kubectl[ -]temper|pathfence|scx_temper)( .*)?$`)
	subcommand = regexp.MustCompile(`^[a-z][a-z-]*$`)
	flag       = regexp.MustCompile(`^--[a-z-]+`)
)

// codeOf is what a page shows as code, line by line.
func codeOf(page string) (lines []string) {
	fenced := false
	for line := range strings.Lines(page) {
		switch trimmed := strings.TrimSpace(line); {
		case strings.HasPrefix(trimmed, "```"):
			fenced = !fenced
		case fenced || strings.HasPrefix(line, "    "):
			lines = append(lines, trimmed)
		default:
			for _, m := range inline.FindAllStringSubmatch(line, -1) {
				lines = append(lines, m[1])
			}
		}
	}
	return lines
}

// unknown says what of a line no program of ours knows; "" where the line calls none, or they know all.
func unknown(line string, all map[string]string) string {
	for call := range strings.SplitSeq(line, " | ") {
		m := ours.FindStringSubmatch(strings.TrimSpace(call))
		if m == nil {
			continue
		}
		command, words := strings.ReplaceAll(m[1], "kubectl-temper", "kubectl temper"), strings.Fields(m[2])
		for len(words) > 0 && subcommand.MatchString(words[0]) {
			if _, known := all[command+" "+words[0]]; !known {
				break
			}
			command, words = command+" "+words[0], words[1:]
		}
		if strings.Contains(all[command], "Available Commands:") && len(words) > 0 && subcommand.MatchString(words[0]) && words[0] != "help" {
			return command + " " + words[0]
		}
		for _, w := range words {
			if w == "--" || strings.HasPrefix(w, "#") {
				break
			}
			if name := flag.FindString(w); name != "" && !regexp.MustCompile(regexp.QuoteMeta(name)+`\b`).MatchString(all[command]) {
				return command + " " + name
			}
		}
	}
	return ""
}

// Whoever copies a command out of a page gets what the page says.
func TestCommandsOfDocumentsExist(t *testing.T) {
	all := commands(t)
	for line, want := range map[string]string{
		"bin/temper bench compare a b":                       "temper bench",
		"sudo bin/temper-lab chaos --sedes 5":                "temper-lab chaos --sedes",
		"bin/temper-lab exec -- x --y":                       "",
		"kubectl get pods | kubectl temper explain --file -": "kubectl temper explain --file",
	} {
		if got := unknown(line, all); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
	for _, page := range documents(t) {
		if strings.HasPrefix(page, "docs/decisions/") { // they keep the names of their time
			continue
		}
		for _, line := range codeOf(string(readFile(t, page))) {
			if what := unknown(line, all); what != "" {
				t.Errorf("%s has %q, and there is no %q", page, line, what)
			}
		}
	}
}

// Units that pages name are installed.
func TestUnitsOfDocumentsExist(t *testing.T) {
	named := regexp.MustCompile(`(?:journalctl -u|systemctl [a-z-]+(?: --now)?) (temper[a-z-]*)`)
	var seen []string
	for _, page := range documents(t) {
		for _, m := range named.FindAllStringSubmatch(string(readFile(t, page)), -1) {
			seen = append(seen, m[1])
			if _, err := os.Stat(filepath.Join(repository, "packaging", m[1]+".service")); err != nil {
				t.Errorf("%s has %q: %v", page, m[0], err)
			}
		}
	}
	if !slices.Contains(seen, "temper") {
		t.Error("no page names the unit temper")
	}
}
