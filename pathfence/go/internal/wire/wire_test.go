package wire

import (
	"strings"
	"testing"
	"time"
)

func headers(h map[string]string) func(string) string {
	return func(name string) string { return h[name] }
}

const ms = time.Millisecond

func TestRead(t *testing.T) {
	for _, c := range []struct {
		name    string
		headers map[string]string
		path    string
		timeout time.Duration
		visits  string
	}{
		{"nothing", nil, "", 0, ""},
		{"all three headers", map[string]string{"x-pf-path": "home.read", "x-pf-deadline": "240", "x-pf-visits": "front*1;shared*2"}, "home.read", 240 * ms, "front*1;shared*2"},
		{"baggage alone", map[string]string{"baggage": "a=b, pf.path=home ,\tpf.deadline=7;p=1,pf.visits=s%2a1%3bt%2A2"}, "home", 7 * ms, "s*1;t*2"},
		{"headers come before baggage", map[string]string{"x-pf-path": "header", "baggage": "pf.path=baggage,pf.deadline=7"}, "header", 7 * ms, ""},
		{"the first of equal members counts", map[string]string{"baggage": "pf.path=a;ttl=1,pf.path=b"}, "a", 0, ""},
		{"a percent sign that encodes nothing", map[string]string{"baggage": "pf.path=a%+1"}, "", 0, ""},
		{"the longest path", map[string]string{"x-pf-path": strings.Repeat("a", 64)}, strings.Repeat("a", 64), 0, ""},
		{"a path that is too long", map[string]string{"x-pf-path": strings.Repeat("a", 65)}, "", 0, ""},
		{"a path with a blank", map[string]string{"x-pf-path": "a b"}, "", 0, ""},
		{"a path with an exclamation mark", map[string]string{"x-pf-path": "a!b"}, "", 0, ""},
		{"a deadline of 0", map[string]string{"x-pf-deadline": "0"}, "", 0, ""},
		{"a deadline with a sign", map[string]string{"x-pf-deadline": "+5"}, "", 0, ""},
		{"a deadline with an exponent", map[string]string{"x-pf-deadline": "1e3"}, "", 0, ""},
		{"a deadline of ten digits", map[string]string{"x-pf-deadline": "1234567890"}, "", 0, ""},
		{"a deadline in other digits", map[string]string{"x-pf-deadline": "٥"}, "", 0, ""},
		{"the longest deadline", map[string]string{"x-pf-deadline": "999999999"}, "", 600 * time.Second, ""},
		{"visits without a count", map[string]string{"x-pf-visits": "a"}, "", 0, ""},
		{"visits with a count of 0", map[string]string{"x-pf-visits": "a*0"}, "", 0, ""},
		{"visits that end with a separator", map[string]string{"x-pf-visits": "a*1;"}, "", 0, ""},
		{"visits without a name", map[string]string{"x-pf-visits": "*1"}, "", 0, ""},
		{"nine visits", map[string]string{"x-pf-visits": "a*1;b*1;c*1;d*1;e*1;f*1;g*1;h*1;i*1"}, "", 0, ""},
		{"64 members", map[string]string{"baggage": "pf.path=a" + strings.Repeat(",m=1", 63)}, "a", 0, ""},
		{"65 members", map[string]string{"baggage": "pf.path=a" + strings.Repeat(",m=1", 64)}, "", 0, ""},
		{"baggage that is too long", map[string]string{"baggage": "pf.path=a," + strings.Repeat("x", 8192)}, "", 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Read(headers(c.headers))
			if got.Path != c.path || got.Timeout != c.timeout || got.Visits() != c.visits {
				t.Errorf("it reads %q, %v, %q; want %q, %v, %q", got.Path, got.Timeout, got.Visits(), c.path, c.timeout, c.visits)
			}
		})
	}
}

func TestOnward(t *testing.T) {
	came := Read(headers(map[string]string{"x-pf-path": "home.read", "x-pf-deadline": "240", "x-pf-visits": "front*1;shared*2"}))
	full := Read(headers(map[string]string{"x-pf-visits": "a*1;b*1;c*1;d*1;e*1;f*1;g*1;h*1"}))
	for _, c := range []struct {
		name string
		got  Context
		want string // path, deadline and visits as they are sent
	}{
		{"one more visit", came.Onward("shared", 40*ms), "home.read 200 front*1;shared*3"},
		{"the first visit", came.Onward("next", 0), "home.read 240 front*1;shared*2;next*1"},
		{"a service without a name", came.Onward("", 0), "home.read 240 front*1;shared*2"},
		{"no time left", came.Onward("", time.Second), "home.read 1 front*1;shared*2"},
		{"a full list loses its first", full.Onward("i", 0), "  b*1;c*1;d*1;e*1;f*1;g*1;h*1;i*1"},
		{"an untrusted peer's", came.Untrusted(), " 240 "},
		{"less time by the transport", came.AtMost(100 * ms), "home.read 100 front*1;shared*2"},
		{"more time by the transport", came.AtMost(time.Hour), "home.read 240 front*1;shared*2"},
		{"time by the transport alone", Context{}.AtMost(time.Hour), " 600000 "},
	} {
		t.Run(c.name, func(t *testing.T) {
			sent := map[string]string{}
			c.got.Write(func(name, value string) { sent[name] = value })
			got := sent[PathHeader] + " " + sent[DeadlineHeader] + " " + sent[VisitsHeader]
			if got != c.want {
				t.Errorf("it sends %q, want %q", got, c.want)
			}
		})
	}
	if came.Visits() != "front*1;shared*2" {
		t.Errorf("what came is changed: %q", came.Visits())
	}
	if got := came.Depth("shared"); got != 2 {
		t.Errorf("the depth is %d, want 2", got)
	}
}
