package workload

import (
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"temper.dev/temper/internal/evidence/bench"
	"temper.dev/temper/lab/listening"
	"temper.dev/temper/lab/plan"
)

// proposal is a file under way. What it cannot know is a comment that says what to write.
type proposal struct {
	strings.Builder
	listening.Program
	name     string
	packages []string
	folders  []string    // that it writes in
	files    [][2]string // by path in the guest, of this host
	notes    []string    // what the user has to look at
}

// Propose describes a program of this host as a workload, with comments for who has to look at it. httpStatus is what it answered
// to GET /; 0: it did not.
func Propose(p listening.Program, httpStatus int) (string, error) {
	o := proposal{Program: p}
	o.name = nameOf(o.calledAs())
	if p.Package != "" {
		var err error
		if o.packages, err = packagesOf(p.Package); err != nil {
			return "", err
		}
		if o.folders, err = foldersOf(o.packages); err != nil {
			return "", err
		}
	}
	command := o.command()
	o.line("# What listens on port %d of this host: process %d, %s.", p.Port, p.PID, p.Path)
	o.line("# Look at what has a comment, then: temper-lab bench run FILE. All fields: docs/start/workload.md.")
	o.line("name: %s", o.workloadName())
	if len(p.Users) > 0 {
		o.line("users: %s # whom it names here; in the guest all are the user service", list(p.Users))
	}
	o.line("services:")
	for _, note := range o.notes {
		o.line("  # %s", note)
	}
	o.line("  - name: %s", o.name)
	if len(o.packages) > 0 {
		o.line("    package: %s # of Debian 12, whatever this host has", flow(o.packages))
	}
	o.line("    command: %s", list(command))
	o.line("    ready: %d", p.Port)
	if !p.Root {
		o.line("    user: service # it is not root here; of the guest, service may write in /tmp only")
	}
	if len(o.folders) > 0 {
		o.line("    folders: %s", list(o.folders))
	}
	if len(o.files) > 0 {
		o.line("    files: # what its command names, and its configuration")
		for _, f := range o.files {
			o.line("      %s: %s", word(f[0]), word(f[1]))
		}
	}
	if own := ownVariables(p.Variables); len(own) > 0 {
		o.line("    # environment: {NAME: value} # here it has %s", some(own))
	}
	o.client(httpStatus)
	o.line("load: 0.5 # of what it can serve, which is measured")
	o.line("cpus: 2")
	o.line("arms: [eevdf, cpuidle, temper]")
	o.line("steps: [0, 1, 2, 4]")
	return o.String(), nil
}

func (o *proposal) line(format string, args ...any) { fmt.Fprintf(o, format+"\n", args...) }

func (o *proposal) note(format string, args ...any) {
	o.notes = append(o.notes, fmt.Sprintf(format, args...))
}

// calledAs is the name by which the program was started: its file's, or that of a link to it, which tells one of many programs in
// a file from others.
func (o *proposal) calledAs() string {
	if len(o.Command) > 0 {
		first, _, _ := strings.Cut(o.Command[0], " ") // what follows, the process has written there
		first = strings.TrimSuffix(first, ":")
		if leadsTo(first, o.Path) {
			return path.Base(first)
		}
	}
	return path.Base(o.Path)
}

// command is what starts the program, as far as its process shows it. It collects the files that it names.
func (o *proposal) command() []string {
	name := o.calledAs()
	program := o.Path
	if o.Package != "" && slices.Contains([]string{"bin", "sbin"}, path.Base(path.Dir(o.Path))) {
		program = name
	}
	command := []string{program}
	if len(o.Command) == 0 || path.Base(o.Command[0]) != name {
		o.note("The process shows %q, and not what has started it: write that, for a service that stays in the foreground.", strings.TrimSpace(strings.Join(o.Command, " ")))
		command = append(command, inForeground[name]...)
	} else {
		for _, argument := range o.Command[1:] {
			command = append(command, argument)
			o.named(argument)
		}
	}
	switch {
	case o.Package == "" && interpreter.MatchString(path.Base(o.Path)):
		o.note("What an interpreter loads by itself, such as modules, does not come by itself: bring it under files, or name Debian's packages.")
	case o.Package != "":
		for _, folder := range []string{o.Package, o.calledAs()} {
			o.bring("/etc/"+folder, "/etc/"+folder)
		}
	}
	if len(o.Calls) > 0 {
		o.note("It calls %s, which the guest does not have: add what answers there as a service before it, on localhost.", strings.Join(o.Calls, ", "))
	}
	return command
}

// inForeground is what keeps programs there that show no arguments.
var inForeground = map[string][]string{"nginx": {"-g", "daemon off;"}}

var interpreter = regexp.MustCompile(`^(python|perl|ruby|node|php|java|lua)[0-9.]*$`)

// leadsTo says whether a name is a file's, or a link to it, as python3 is to python3.11.
func leadsTo(name, file string) bool {
	if name == "" {
		return false
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(filepath.Dir(file), name)
	}
	end, err := filepath.EvalSymlinks(name)
	return err == nil && end == file
}

// client asks as the program's own clients do, where that is known.
func (o *proposal) client(httpStatus int) {
	const orCommand = "Or bring a client of your own: docs/start/workload.md#a-client-of-your-own."
	switch program := o.calledAs(); {
	case program == "memcached":
		o.line("client: {memcached: {port: %d}}", o.Port)
	case program == "redis-server" || program == "valkey-server":
		o.line("client:\n  redis: {port: %d, connections: 32, keys: 1000, valueSize: 100, writes: 0.1}", o.Port)
	case program == "postgres":
		o.line("client: # setup makes tables, and query is what is measured; $1 is a random key\n  postgres: {port: %d, connections: 8, query: select 1}", o.Port)
	case httpStatus == 0:
		o.line("# It does not answer in HTTP/1.1, or not within two seconds. %s", orCommand)
		o.line("client: {http: {url: \"http://localhost:%d/\", connections: 32}}", o.Port)
	case httpStatus >= 400:
		o.line("# It answered %d to GET /: write a path that it serves. %s", httpStatus, orCommand)
		o.line("client: {http: {url: \"http://localhost:%d/\", connections: 32}}", o.Port)
	default:
		o.line("client: {http: {url: \"http://localhost:%d/\", connections: 32}} # it answered %d to GET /", o.Port, httpStatus)
	}
}

var noName = regexp.MustCompile(`[^a-z0-9-]+`)

// nameOf makes a program's name a service's.
func nameOf(program string) string {
	name := strings.Trim(noName.ReplaceAllString(strings.ToLower(program), "-"), "-0123456789")
	name = name[:min(len(name), 24)] // a workload's may get a word before it
	if name == "" || name == plan.ClientName || name == plan.BackgroundName {
		name = "service"
	}
	return name
}

// workloadName is none of the lab's own, by which records are told apart.
func (o *proposal) workloadName() string {
	if bench.IsScenario(o.name) {
		return "my-" + o.name
	}
	return o.name
}

// usual are variables that say nothing of a service.
var usual = []string{
	"COLORTERM", "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "HOME", "INVOCATION_ID", "JOURNAL_STREAM", "LANG", "LANGUAGE", "LESSCLOSE", "LESSOPEN", "LOGNAME", "LS_COLORS",
	"MAIL", "MAINPID", "MANAGERPID", "MEMORY_PRESSURE_WATCH", "MEMORY_PRESSURE_WRITE", "NOTIFY_SOCKET", "OLDPWD", "PATH", "PWD", "SHELL", "SHLVL", "SYSTEMD_EXEC_PID", "TERM", "TZ",
	"USER", "WATCHDOG_PID", "WATCHDOG_USEC", "_",
}

func ownVariables(names []string) (own []string) {
	for _, name := range names {
		if !slices.Contains(usual, name) && !strings.HasPrefix(name, "LC_") && !strings.HasPrefix(name, "XDG_") && !strings.HasPrefix(name, "SSH_") && !strings.HasPrefix(name, "SUDO_") {
			own = append(own, name)
		}
	}
	return own
}

// some are the first of many.
func some(names []string) string {
	const most = 8
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}

// plain are words that mean themselves in YAML, in a list, too.
var plain = regexp.MustCompile(`^-{0,2}[A-Za-z/][A-Za-z0-9_./=-]*$`)

// word is a text as YAML has it.
func word(text string) string {
	if plain.MatchString(text) && !slices.Contains([]string{"null", "true", "false", "yes", "no"}, strings.ToLower(text)) {
		return text
	}
	var quoted strings.Builder // a string of JSON is one of YAML
	e := json.NewEncoder(&quoted)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // no text fails
	return strings.TrimSpace(quoted.String())
}

func list(words []string) string {
	var quoted []string
	for _, w := range words {
		quoted = append(quoted, word(w))
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// flow is one word, or a list of several.
func flow(words []string) string {
	if len(words) == 1 {
		return word(words[0])
	}
	return list(words)
}
