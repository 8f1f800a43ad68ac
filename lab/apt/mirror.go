package apt

import (
	"io/fs"
	"net/url"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"temper.dev/temper/internal/base/exit"
)

// source is one archive that the host's apt is configured to read.
type source struct {
	uri        string
	suite      string
	components []string
}

// debianCodename tells Debian's suites from Ubuntu's and from those that vendors invent.
var debianCodename = regexp.MustCompile(`^(bullseye|bookworm|trixie|forky|duke|sid)(-updates|-backports|-proposed-updates)?$`)

// findMirror returns the Debian archive that this host is meant to use. The project names no host:
// the operator's choice (a mirror near by, a proxy, a snapshot) is right here too.
func findMirror(root fs.FS, getenv func(string) string) (string, error) {
	if uri := getenv("TEMPER_DEBIAN_MIRROR"); uri != "" {
		return strings.TrimRight(uri, "/"), nil
	}
	if uri := mirrorOf(aptSources(root)); uri != "" {
		return uri, nil
	}
	if uri := debootstrapMirror(root); uri != "" {
		return uri, nil
	}
	return "", exit.New(exit.Config,
		"set TEMPER_DEBIAN_MIRROR to the address of one, or install debootstrap, which knows the default",
		"this host's apt configuration names no Debian mirror")
}

// mirrorOf prefers an archive at the usual path, then one that offers a Debian suite.
func mirrorOf(sources []source) string {
	sources = slices.DeleteFunc(slices.Clone(sources), func(s source) bool {
		return !slices.Contains(s.components, "main")
	})
	for _, s := range sources {
		if u, err := url.Parse(s.uri); err == nil && path.Base(u.Path) == "debian" {
			return strings.TrimRight(s.uri, "/")
		}
	}
	for _, s := range sources {
		if debianCodename.MatchString(s.suite) {
			return strings.TrimRight(s.uri, "/")
		}
	}
	return ""
}

// aptSources reads every source that apt itself would. A file that cannot be read is as one that
// is not there: the caller says what it looked for.
func aptSources(root fs.FS) []source {
	var sources []source
	if text, err := fs.ReadFile(root, "etc/apt/sources.list"); err == nil {
		sources = parseOneLine(string(text))
	}
	names, _ := fs.Glob(root, "etc/apt/sources.list.d/*")
	for _, name := range names {
		text, err := fs.ReadFile(root, name)
		if err != nil {
			continue
		}
		switch path.Ext(name) {
		case ".list":
			sources = append(sources, parseOneLine(string(text))...)
		case ".sources":
			sources = append(sources, parseDeb822(string(text))...)
		}
	}
	return sources
}

// parseOneLine reads "deb [options] URI suite component...".
func parseOneLine(text string) []source {
	var sources []source
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if kind != "deb" {
			continue
		}
		rest = strings.TrimSpace(rest)
		if strings.HasPrefix(rest, "[") {
			_, rest, _ = strings.Cut(rest, "]")
		}
		if f := strings.Fields(rest); len(f) >= 3 && isWeb(f[0]) {
			sources = append(sources, source{f[0], f[1], f[2:]})
		}
	}
	return sources
}

// parseDeb822 reads stanzas of "Key: value", where a line that starts with a blank goes on.
func parseDeb822(text string) []source {
	var sources []source
	stanza := map[string]string{}
	flush := func() {
		if slices.Contains(strings.Fields(stanza["types"]), "deb") && !strings.EqualFold(stanza["enabled"], "no") {
			for _, uri := range strings.Fields(stanza["uris"]) {
				for _, suite := range strings.Fields(stanza["suites"]) {
					if isWeb(uri) {
						sources = append(sources, source{uri, suite, strings.Fields(stanza["components"])})
					}
				}
			}
		}
		clear(stanza)
	}
	key := ""
	for line := range strings.Lines(text) {
		switch {
		case strings.TrimSpace(line) == "":
			flush()
		case strings.HasPrefix(line, "#"):
		case line[0] == ' ' || line[0] == '\t':
			stanza[key] += " " + strings.TrimSpace(line)
		default:
			name, value, _ := strings.Cut(line, ":")
			key = strings.ToLower(strings.TrimSpace(name))
			stanza[key] = strings.TrimSpace(value)
		}
	}
	flush()
	return sources
}

func isWeb(uri string) bool {
	return strings.HasPrefix(uri, "http://") || strings.HasPrefix(uri, "https://")
}

var defaultMirror = regexp.MustCompile(`(?m)^\s*(?:default_mirror\s+|DEF_MIRROR=)"?(https?://\S+/debian)/?"?\s*$`)

// debootstrapMirror is what debootstrap would use for Debian: an Ubuntu host's own apt never names it.
func debootstrapMirror(root fs.FS) string {
	for _, name := range []string{"usr/share/debootstrap/scripts/sid", "usr/sbin/debootstrap"} {
		text, err := fs.ReadFile(root, name)
		if err != nil {
			continue
		}
		if m := defaultMirror.FindSubmatch(text); m != nil {
			return string(m[1])
		}
	}
	return ""
}

// hostRoot is the file system that findMirror reads outside of tests.
func hostRoot() fs.FS { return os.DirFS("/") }
