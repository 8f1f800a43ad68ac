package agent

import (
	"reflect"
	"testing"

	"temper.dev/temper/internal/config"
	"temper.dev/temper/internal/fixture"
	"temper.dev/temper/internal/tier"
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
	if got, err := unitCgroup(root, "none.service"); err != nil || got != "" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := unitCgroup(root, "twice.service"); err == nil {
		t.Error("two cgroups of one name are no error")
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
