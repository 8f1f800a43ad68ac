// Package wire reads and writes what travels with a request; ../../../spec/wire.md has its forms and bounds. What breaks a
// rule is as if it were not there.
package wire

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"temper.dev/temper/pathfence/go/core"
)

// Names of headers, and of gRPC's metadata.
const (
	PathHeader     = "x-pf-path"
	DeadlineHeader = "x-pf-deadline"
	VisitsHeader   = "x-pf-visits"
	WithinHeader   = "x-pf-within"
	ShedHeader     = "x-pf-shed"
)

// Longest is the longest time that a request may have.
const Longest = 600 * time.Second

const (
	mostDigits  = 9
	mostVisits  = 8
	mostBaggage = 8192 // bytes
	mostMembers = 64
)

// IsLocal says whether a host may be this process itself, by its address. No name is looked up.
func IsLocal(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || strings.EqualFold(host, "localhost") || ip != nil && (ip.IsLoopback() || ip.IsUnspecified())
}

// IsReason says whether a fence gives this reason for a refusal.
func IsReason(reason string) bool {
	switch reason {
	case "expired", "late", "full", "depth", "closed":
		return true
	}
	return false
}

// Context is what a request came with.
type Context struct {
	Path    string        // the key; empty: none
	Timeout time.Duration // what is left of its time; 0: not said
	visits  []visit
}

type visit struct {
	service string
	count   int64
}

// Read reads headers, and for what these do not say the baggage. The function gives the first value of a header, and all of
// them, joined by commas, of baggage.
func Read(header func(name string) string) Context {
	own := read(header(PathHeader), header(DeadlineHeader), header(VisitsHeader))
	if own.Path != "" && own.Timeout > 0 && own.visits != nil {
		return own
	}
	other := readBaggage(header("baggage"))
	if own.Path == "" {
		own.Path = other.Path
	}
	if own.Timeout == 0 {
		own.Timeout = other.Timeout
	}
	if own.visits == nil {
		own.visits = other.visits
	}
	return own
}

func read(path, deadline, visits string) Context {
	var c Context
	if core.ValidName(path) {
		c.Path = path
	}
	if left := number(deadline); left > 0 {
		c.Timeout = min(time.Duration(left)*time.Millisecond, Longest)
	}
	c.visits = readVisits(visits)
	return c
}

// number is a decimal number without sign, of 1 to 9 digits; -1 for anything else.
func number(text string) int64 {
	if text == "" || len(text) > mostDigits {
		return -1
	}
	for _, digit := range []byte(text) {
		if digit < '0' || digit > '9' {
			return -1
		}
	}
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// readVisits reads name*count;name*count; nil where a rule is broken.
func readVisits(text string) []visit {
	if text == "" {
		return nil
	}
	var visits []visit
	for part := range strings.SplitSeq(text, ";") {
		service, times, _ := strings.Cut(part, "*")
		count := number(times)
		if !core.ValidName(service) || count < 1 || len(visits) == mostVisits {
			return nil
		}
		visits = append(visits, visit{service, count})
	}
	return visits
}

func readBaggage(header string) Context {
	if header == "" || len(header) > mostBaggage || strings.Count(header, ",") >= mostMembers {
		return Context{}
	}
	found := map[string]string{}
	for member := range strings.SplitSeq(header, ",") {
		name, value, _ := strings.Cut(member, "=")
		name = strings.Trim(name, " \t")
		if _, twice := found[name]; twice {
			continue
		}
		value, _, _ = strings.Cut(value, ";")
		found[name] = unescaped(strings.Trim(value, " \t"))
	}
	return read(found["pf.path"], found["pf.deadline"], found["pf.visits"])
}

// unescaped decodes what is percent-encoded, and leaves what only looks like it.
func unescaped(s string) string {
	var out []byte
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if b, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				out = append(out, byte(b))
				i += 2
				continue
			}
		}
		out = append(out, s[i])
	}
	return string(out)
}

// Write gives the headers that have something to say.
func (c Context) Write(set func(name, value string)) {
	if core.ValidName(c.Path) {
		set(PathHeader, c.Path)
	}
	if c.Timeout > 0 {
		set(DeadlineHeader, strconv.FormatInt(max(1, c.Timeout.Milliseconds()), 10))
	}
	if len(c.visits) > 0 {
		set(VisitsHeader, c.Visits())
	}
}

// Visits is which services the chain of calls is in, as it travels.
func (c Context) Visits() string {
	parts := make([]string, len(c.visits))
	for i, v := range c.visits {
		parts[i] = v.service + "*" + strconv.FormatInt(v.count, 10)
	}
	return strings.Join(parts, ";")
}

// Depth is how often the chain has been in a service before.
func (c Context) Depth(service string) int64 {
	for _, v := range c.visits {
		if v.service == service {
			return v.count
		}
	}
	return 0
}

// Untrusted is what is left of it from a peer that may not choose keys and depths: the time.
func (c Context) Untrusted() Context { return Context{Timeout: c.Timeout} }

// AtMost is it with no more time than a transport says is left; 0: not said.
func (c Context) AtMost(left time.Duration) Context {
	if left > 0 && (c.Timeout == 0 || left < c.Timeout) {
		c.Timeout = min(left, Longest)
	}
	return c
}

// Onward is what a service sends on once it has used some of the time. Without a name of the service no visit is added.
func (c Context) Onward(service string, used time.Duration) Context {
	if c.Timeout > 0 {
		c.Timeout = max(1, c.Timeout-used)
	}
	if service == "" {
		return c
	}
	c.visits = slices.Clone(c.visits)
	if i := slices.IndexFunc(c.visits, func(v visit) bool { return v.service == service }); i >= 0 {
		c.visits[i].count++
		return c
	}
	if len(c.visits) == mostVisits {
		c.visits = c.visits[1:]
	}
	c.visits = append(c.visits, visit{service, 1})
	return c
}
