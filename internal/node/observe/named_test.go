package observe

import (
	"encoding/json"
	"slices"
	"testing"
)

// Of a role without a task nothing is known: that is no nought, and no 100 %.
func TestAnswer(t *testing.T) {
	roles := map[string]Role{"/web": Higher, "/db": Higher, "/batch": Background}
	ran := Report{Seconds: 1, HigherUS: 9, BackgroundUS: 3, StrandedUS: 1}
	for _, c := range []struct {
		what                 string
		cgroups              []string // of the tasks that are seen
		report               Report
		unseen               []string
		violations, bg, part string // as JSON
	}{
		{"all", []string{"/web", "/db/shard", "/batch", "/other"}, ran, nil, "0", "3", "0.75"},
		{"one of two", []string{"/web", "/batch/job"}, ran, []string{"/db"}, "0", "3", "0.75"},
		{"no background", []string{"/web", "/db", "/batches", "/"}, Report{HigherUS: 9}, []string{"/batch"}, "null", "null", "null"},
		{"nothing critical", []string{"/batch"}, Report{BackgroundUS: 3}, []string{"/db", "/web"}, "null", "null", "null"},
		{"background that found no CPU idle", []string{"/web", "/db", "/batch"}, Report{HigherUS: 9}, nil, "0", "0", "null"},
	} {
		named := NewNamed(roles)
		for _, cgroup := range c.cgroups {
			named.RoleOf(cgroup)
		}
		answer := named.Answer(c.report)
		if !slices.Equal(answer.Unseen, c.unseen) {
			t.Errorf("%s: unseen are %q, want %q", c.what, answer.Unseen, c.unseen)
		}
		text, err := json.Marshal(answer)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]json.RawMessage
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		for key, want := range map[string]string{"violations": c.violations, "background_us": c.bg, "background_share": c.part} {
			if string(got[key]) != want {
				t.Errorf("%s: %s is %s, want %s, in %s", c.what, key, got[key], want, text)
			}
		}
	}
}

func TestNamedHaveTheRolesOfCgroups(t *testing.T) {
	named := NewNamed(map[string]Role{"/a": Higher, "/a/b": Background})
	for cgroup, want := range map[string]Role{"/a": Higher, "/a/x": Higher, "/a/b": Background, "/a/b/c": Background, "/ab": Other, "": Other} {
		if got := named.RoleOf(cgroup); got != want {
			t.Errorf("%q: %d, want %d", cgroup, got, want)
		}
	}
}
