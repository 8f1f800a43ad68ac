package main

import (
	"strings"
	"testing"

	"temper.dev/temper/internal/node/observe"
)

func TestObservedInWords(t *testing.T) {
	const share = "background had 75.00 % of the CPU time"
	for _, c := range []struct {
		what      string
		answer    observe.Answer
		has, none string
	}{
		{"both were seen", observe.Answer{Known: true, Share: new(0.75)}, share, "no task of"},
		{"a cgroup of several had no task", observe.Answer{Known: true, Share: new(0.75), Unseen: []string{"/db"}}, "no task of /db was seen\nbackground ran", "/web"},
		{"background had no task", observe.Answer{Unseen: []string{"/batch"}}, "no task of /batch was seen\n", "background"},
		{"nothing was left", observe.Answer{Known: true}, "no CPU idled that it could have used\n", "background had"},
	} {
		c.answer.Seconds = 1
		var text strings.Builder
		if err := writeObserved(&text, c.answer); err != nil {
			t.Fatal(err)
		}
		if got := text.String(); !strings.Contains(got, c.has) || strings.Contains(got, c.none) {
			t.Errorf("%s: got %q, want it with %q and without %q", c.what, got, c.has, c.none)
		}
	}
}
