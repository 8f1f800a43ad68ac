package agent

import (
	"log/slog"
	"os"
	"reflect"
	"testing"

	"temper.dev/temper/internal/base/fixture"
	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/node/config"
)

func TestCgroupOfUnit(t *testing.T) {
	for _, c := range []struct{ unit, answer, want string }{
		{"nginx.service", "Slice=system.slice\nControlGroup=/system.slice/nginx.service\n", "/system.slice/nginx.service"},
		{"nginx.service", "Slice=web-front.slice\nControlGroup=\n", "/web.slice/web-front.slice/nginx.service"},
		{"nginx.service", "Slice=-.slice\nControlGroup=\n", "/nginx.service"},
		{"none.service", "Slice=\nControlGroup=\n", "/system.slice/none.service"},
		{"a-b-c.slice", "Slice=\nControlGroup=\n", "/a.slice/a-b.slice/a-b-c.slice"},
	} {
		if got := cgroupOf(c.unit, c.answer); got != c.want {
			t.Errorf("%s with %q: %s, want %s", c.unit, c.answer, got, c.want)
		}
	}
}

func TestUnitWithoutSystemd(t *testing.T) {
	root := fixture.Tree(t, "/services", "/services/nginx.service", "/services/twice.service", "/twice.service")
	if got, err := unitCgroup(root, "nginx.service"); err != nil || got != "/services/nginx.service" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := unitCgroup(root, "none.service"); err != nil || got != "/system.slice/none.service" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := unitCgroup(root, "twice.service"); err == nil {
		t.Error("two cgroups of one name are no error")
	}
}

// Whoever was given a cgroup must not take a unit's tier by a name, nor hide the unit.
func TestUnitWithoutSystemdIsRoots(t *testing.T) {
	root := fixture.Tree(t, "/a-user", "/a-user/web.service", "/a-user/other.service", "/shop", "/shop/web.service")
	if err := os.Chown(root.Cgroup("/a-user"), 1000, 1000); err != nil {
		t.Fatal(err)
	}
	for unit, want := range map[string]string{"web.service": "/shop/web.service", "other.service": "/system.slice/other.service"} {
		if got, err := unitCgroup(root, unit); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", unit, got, err, want)
		}
	}
}

// A service keeps its tier where nothing answers for a while, and the node says so.
func TestUnitKeepsItsCgroupWithoutAnAnswer(t *testing.T) {
	root := fixture.Tree(t, "/shop", "/shop/web.service")
	cfg := &config.Config{Units: map[string]tier.Tier{"web.service": tier.Critical}}
	source := FileSource{root: root, cfg: cfg, log: slog.New(slog.DiscardHandler)}
	want := []Member{{Cgroup: "/shop/web.service", Tier: tier.Critical, Source: "web.service"}}
	for _, step := range []struct {
		name     string
		make     string
		problems int
	}{{"found", "", 0}, {"a second of its name", "/web.service", 1}, {"that is gone", "", 0}} {
		if step.make != "" {
			if err := os.Mkdir(root.Cgroup(step.make), 0o755); err != nil {
				t.Fatal(err)
			}
		} else if err := os.RemoveAll(root.Cgroup("/web.service")); err != nil {
			t.Fatal(err)
		}
		source.Refresh()
		if w := source.Look(); !reflect.DeepEqual(w.Members, want) || len(w.Problems) != step.problems {
			t.Errorf("%s: members %+v, problems %q; want %+v and %d problems", step.name, w.Members, w.Problems, want, step.problems)
		}
	}
}

func TestWantedTellsContradictions(t *testing.T) {
	cfg := &config.Config{
		Cgroups: map[string]tier.Tier{"/system.slice/x.service": tier.Critical},
		Units:   map[string]tier.Tier{"x.service": tier.Background, "y.service": tier.Standard},
	}
	source := FileSource{root: fixture.Tree(t), cfg: cfg, units: map[string]string{"x.service": "/system.slice/x.service", "y.service": "/y.service"}}
	w := source.Look()
	want := []Member{
		{Cgroup: "/system.slice/x.service", Tier: tier.Critical, Source: "config"},
		{Cgroup: "/y.service", Tier: tier.Standard, Source: "y.service"},
	}
	if !reflect.DeepEqual(w.Members, want) || len(w.Problems) != 1 {
		t.Errorf("members %+v, problems %q", w.Members, w.Problems)
	}
}
