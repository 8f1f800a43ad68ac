package survey

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"temper.dev/temper/internal/base/exit"
)

const attached = `libbpf: prog 'temper_tick': -- BEGIN PROG LOAD LOG --
verification time 17192 usec
processed 65 insns (limit 1000000) max_states_per_insn 1 total_states 3 peak_states 3 mark_read 0
-- END PROG LOAD LOG --
libbpf: prog 'temper_init': -- BEGIN PROG LOAD LOG --
processed 8149 insns (limit 1000000) max_states_per_insn 14 total_states 435 peak_states 954 mark_read 0
-- END PROG LOAD LOG --
scx_temper: attached
`

func loaded(t *testing.T, status int, output string) Report {
	t.Helper()
	r := Report{Release: "6.18"}
	if err := r.Loaded(status, output); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestLoaded(t *testing.T) {
	r := loaded(t, 0, attached)
	if r.Verified["temper_tick"] != 65 || r.Verified["temper_init"] != 8149 || len(r.Verified) != 2 || r.Total() != 8214 || r.Verdict() != "attaches" {
		t.Errorf("%+v", r)
	}
	r = loaded(t, 5, "libbpf: failed\nscx_temper: the type data lacks a tag\n")
	if r.Works() || r.Verdict() != "refused: the type data lacks a tag" {
		t.Errorf("%+v", r)
	}
	for _, silent := range []string{"", strings.Replace(attached, "processed 65 insns", "", 1)} {
		if err := new(Report).Loaded(0, silent); err == nil {
			t.Errorf("%q is no error", silent)
		}
	}
}

func TestTested(t *testing.T) {
	r := Report{}
	r.Tested("=== RUN   TestA\n--- PASS: TestA (1.0s)\n    --- PASS: TestA/sub (0.1s)\n--- FAIL: TestB (2.00s)\n--- SKIP: TestC\n", errors.New("the guest was stopped; its console ends with:\n  panic"))
	if r.Passed != 1 || !slices.Equal(r.Failed, []string{"TestB", "TestC", "the guest was stopped"}) || r.Works() {
		t.Errorf("%+v", r)
	}
	if works := (Report{Passed: 1}); works.Verdict() != "works" {
		t.Errorf("%s", works.Verdict())
	}
	none := Report{}
	if none.Tested("", nil); none.Works() {
		t.Error("without a test it works")
	}
}

func TestMerge(t *testing.T) {
	got := Merge([]Report{{Release: "a", Passed: 1}, {Release: "b"}}, []Report{{Release: "c"}, {Release: "a", Passed: 2}})
	if len(got) != 3 || got[0].Passed != 2 || got[1].Release != "b" || got[2].Release != "c" {
		t.Errorf("%+v", got)
	}
}

func TestCheck(t *testing.T) {
	was := Report{Release: "6.18.15", Verified: map[string]int{"tick": 100}, Passed: 1}
	record := []Report{was, {Release: "7.1.13", Refused: "no BTF"}}
	for _, c := range []struct {
		name  string
		found Report
		worse string
	}{
		{"the same", was, ""},
		{"a little dearer", Report{Release: "6.18.15", Verified: map[string]int{"tick": 110}}, ""},
		{"dearer", Report{Release: "6.18.15", Verified: map[string]int{"tick": 111}}, "tick, and looked at 100"},
		{"new program", Report{Release: "6.18.15", Verified: map[string]int{"tick": 100, "tock": 1}}, "1 instructions for tock"},
		{"broken", Report{Release: "6.18.15", Failed: []string{"TestB"}}, "failed: TestB"},
		{"still refused", Report{Release: "7.1.13", Refused: "no BTF"}, ""},
		{"a later one of the series", Report{Release: "6.18.16", Verified: map[string]int{"tick": 110}}, ""},
		{"a dearer one of the series", Report{Release: "6.18.16", Verified: map[string]int{"tick": 111}}, "looked at 100"},
		{"another series", Report{Release: "6.1.15"}, "6.1.15: no kernel of its series"},
	} {
		err := Check([]Report{c.found}, record)
		if c.worse == "" && err != nil || c.worse != "" && (err == nil || !strings.Contains(err.Error(), c.worse)) {
			t.Errorf("%s: %v", c.name, err)
		}
		var status *exit.Error
		if err != nil && !errors.As(err, &status) {
			t.Errorf("%s: %v has no cure", c.name, err)
		}
	}
}
