package trial

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"temper.dev/temper/pathfence/bench/record"
)

func shopRuns(t *testing.T) []Run {
	t.Helper()
	s := Study{Programs: Programs{Shop: []string{"java", "Shop"}}, Language: "java", Scale: Standard, Timeline: Full, Arms: Languages["java"].Quick()}
	var err error
	if s.Disturbances, err = s.Choose([]string{record.ShopSlow}); err != nil {
		t.Fatal(err)
	}
	return s.repetition(0)
}

// The shop is warmed up for longer, and its own paths alone are what it is held against.
func TestShopRuns(t *testing.T) {
	runs := shopRuns(t)
	for _, r := range runs {
		if r.Timeline.WarmUp != 10*time.Second || r.Timeline.Disturbed != Full.Disturbed {
			t.Errorf("%s: %+v", r.Arm.Name, r.Timeline)
		}
	}
	got := names(runs)
	slices.Sort(got)
	want := []string{"shop / alone", "shop, slow tenfold / capacity", "shop, slow tenfold / concurrency-limits, Vegas", "shop, slow tenfold / fence", "shop, slow tenfold / shared pool"}
	if !slices.Equal(got, want) {
		t.Errorf("a repetition has %q, not %q", got, want)
	}
}

// Only the front end has the arm. To measure what the orders can serve, they and the cart are enough.
func TestShopLines(t *testing.T) {
	cart, catalogue, orders := "java Shop cart --workers 64", "java Shop catalogue --workers 64", "java Shop orders --workers 8 --downstream cart"
	front := func(flags string) string {
		return "java Shop front --workers 16" + flags + " --downstream cart --downstream catalogue --downstream orders"
	}
	lines := map[string][]string{}
	for _, r := range shopRuns(t) {
		for _, m := range r.Disturbance.topology.members() {
			lines[r.Arm.Name] = append(lines[r.Arm.Name], strings.Join(r.shopLine(m), " "))
		}
	}
	for arm, want := range map[string][]string{
		record.Capacity:             {cart, orders},
		record.Alone:                {cart, catalogue, orders, front("")},
		record.Shared:               {cart, catalogue, orders, front("")},
		"concurrency-limits, Vegas": {cart, catalogue, orders, front(" --admission vegas")},
	} {
		if !slices.Equal(lines[arm], want) {
			t.Errorf("%s: %q, not %q", arm, lines[arm], want)
		}
	}
}

func TestShopAddresses(t *testing.T) {
	for _, c := range []struct {
		topology Topology
		ports    map[string]int
		want     map[string]string
	}{
		{shop, map[string]int{"browse": 1, "cart": 1, "checkout": 1},
			map[string]string{"browse": "http://127.0.0.1:1/browse", "cart": "http://127.0.0.1:1/cart", "checkout": "http://127.0.0.1:1/checkout"}},
		{shop.capacity(), map[string]int{record.Slowed: 2}, map[string]string{record.Slowed: "http://127.0.0.1:2/orders"}},
	} {
		if got := c.topology.addresses(c.ports); !maps.Equal(got, c.want) {
			t.Errorf("%v, not %v", got, c.want)
		}
	}
}

func sh(script string) []string { return []string{"/bin/sh", "-c", script} }

// Of programs that are started at the same time, one can wait for another, whichever is first.
func TestAddAll(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	scripts := map[string]string{"asks": "read word <" + fifo, "says": "echo word >" + fifo}
	for _, order := range [][]string{{"asks", "says"}, {"says", "asks"}} {
		var lines [][]string
		for _, name := range order {
			lines = append(lines, sh(scripts[name]+"; echo listening "+name+"=1; cat >/dev/null"))
		}
		s := &set{}
		processes, err := s.addAll(lines)
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range processes {
			if p.Ports[order[i]] != 1 {
				t.Errorf("process %d listens on %v, not for %s", i, p.Ports, order[i])
			}
		}
		if err := s.stop(); err != nil || len(s.processes) != len(lines) {
			t.Errorf("%d processes, %v", len(s.processes), err)
		}
	}
}

// Where one does not start, the others are known, so that they are stopped.
func TestAddAllWithoutOne(t *testing.T) {
	s := &set{}
	_, err := s.addAll([][]string{sh("echo listening a=1; cat >/dev/null"), sh("exit 3"), sh("echo listening b=2; cat >/dev/null")})
	if err == nil || len(s.processes) != 2 {
		t.Errorf("%d processes, %v", len(s.processes), err)
	}
	if err := s.stop(); err != nil {
		t.Error(err)
	}
}
