package trial

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"temper.dev/temper/pathfence/bench/load"
	"temper.dev/temper/pathfence/bench/record"
	"temper.dev/temper/pathfence/go/core"
)

var topologies = map[string]Topology{"two paths": twoPaths, "one downstream": oneDownstream, "cut": cut, "social": social, "shop": shop, "media": media}

func byName(t Topology) map[string]member {
	members := map[string]member{}
	for _, m := range t.members() {
		members[m.name] = m
	}
	return members
}

// The social network is as large as it is said to be.
func TestSocial(t *testing.T) {
	services, stores := 0, 0
	for _, m := range social.members() {
		if m.store() {
			stores++
		} else {
			services++
		}
	}
	if services != 17 || stores != 19 || len(social.of(record.Slowed)) != 8 || len(social.of(record.Innocent)) != 16 {
		t.Errorf("%d services, %d stores, %d slowed and %d innocent paths", services, stores, len(social.of(record.Slowed)), len(social.of(record.Innocent)))
	}
	checkNames(t, social)
}

// checkNames fails where the rows are not of the paths that use the disturbed store and of the others, or where nobody, or
// somebody else, has a name that has something of its own.
func checkNames(t *testing.T, topology Topology) {
	t.Helper()
	members := byName(topology)
	for _, r := range topology.Routes {
		if _, uses := members[topology.Disturbed].calls[r.Path]; uses != (r.Group == record.Slowed) {
			t.Errorf("%s is a path of the row %q", r.Path, r.Group)
		}
	}
	for _, name := range topology.Quick {
		if m, ok := members[name]; !ok || !m.store() || name == topology.Disturbed {
			t.Errorf("%q is quick", name)
		}
	}
	for _, name := range slices.Concat(topology.BesideJava, slices.Collect(maps.Keys(topology.Workers))) {
		if m, ok := members[name]; !ok || m.store() {
			t.Errorf("%q is no service", name)
		}
	}
}

// In each topology all that is called can be started before those that call it, a path comes to nobody twice, and what is
// disturbed is a store, but for the shop's orders, which call the cart; to measure what that can serve nobody else is needed.
func TestTopologies(t *testing.T) {
	for name, topology := range topologies {
		disturbed := byName(topology)[topology.Disturbed]
		want := []string{disturbed.name}
		if name == "shop" {
			want = []string{"cart", disturbed.name}
		} else if !disturbed.store() {
			t.Errorf("%s: %q is no store", name, topology.Disturbed)
		}
		var needed []string
		for _, m := range topology.capacity().members() {
			needed = append(needed, m.name)
		}
		if !slices.Equal(needed, want) {
			t.Errorf("%s: %q are needed, not %q", name, needed, want)
		}
		up := map[string]bool{}
		for _, m := range topology.members() {
			for path, called := range m.calls {
				for _, other := range called {
					if !up[other] {
						t.Errorf("%s: %s calls %s on %s, which starts later", name, m.name, other, path)
					}
				}
			}
			up[m.name] = true
		}
		paths := map[string]bool{}
		for _, r := range topology.Routes {
			if paths[r.Path] {
				t.Errorf("%s: two paths %s", name, r.Path)
			}
			paths[r.Path] = true
			visited := map[string]bool{}
			var walk func(Hop)
			walk = func(h Hop) {
				if visited[h.Name] {
					t.Errorf("%s: %s comes to %s twice", name, r.Path, h.Name)
				}
				visited[h.Name] = true
				for _, c := range h.Calls {
					walk(c)
				}
			}
			walk(r.First)
		}
	}
}

// Each service takes the fence's configuration, with a class for each path that goes through it and no other, and has a
// worker or more for each, so that there can be a bulkhead for each.
func TestServers(t *testing.T) {
	for name, topology := range topologies {
		for _, m := range topology.members() {
			if m.store() || name == "shop" && m.name != shopFront {
				continue
			}
			s := topology.server(m, topology.scaled(Standard))
			if s.Workers < len(s.Paths) {
				t.Errorf("%s, %s: %d workers for %d paths", name, m.name, s.Workers, len(s.Paths))
			}
			line := wholeFence.service(s, nil)
			var config core.Config
			if err := json.Unmarshal([]byte(line[slices.Index(line, "--fence")+1]), &config); err != nil {
				t.Fatal(err)
			}
			if _, err := core.New(config, 0); err != nil {
				t.Errorf("%s, %s: %v", name, m.name, err)
			}
			var keys []string
			for _, c := range config.Classes {
				keys = append(keys, c.Keys...)
			}
			if !slices.Equal(keys, m.paths()) || config.Workers != int64(s.Workers) {
				t.Errorf("%s, %s: %d workers, classes for %q, not %q", name, m.name, config.Workers, keys, m.paths())
			}
		}
	}
	front := social.server(byName(social)["front end"], social.scaled(Standard))
	if front.Workers != 64 || math.Abs(front.Slowed.Rate-125) > 1e-9 || math.Abs(front.Innocent.Rate-75) > 1e-9 {
		t.Errorf("the front end: %+v", front)
	}
	// 12 of 60 innocent requests read the home timeline, 8 refresh it; one slowed one in 23 deletes from it.
	home := social.server(byName(social)["home timeline"], social.scaled(Standard))
	if home.Workers != 16 || math.Abs(home.Innocent.Rate-25) > 1e-9 || math.Abs(home.Slowed.Rate-125.0/23) > 1e-9 {
		t.Errorf("the home timeline: %+v", home)
	}
}

// All ports of a path are told, in the order in which they are called.
func TestDownstreams(t *testing.T) {
	line := sharedPool.service(Server{Scale: Standard, Paths: []string{"a", "b"}}, map[string][]int{"a": {3, 1}, "b": {2}})
	if got := strings.Join(line, " "); got != "--workers 16 --downstream a=3 --downstream a=1 --downstream b=2" {
		t.Errorf("%q", got)
	}
}

// A group's paths are offered what the group is, each its part.
func TestParts(t *testing.T) {
	sums := map[string]float64{}
	scale := social.scaled(Standard)
	for _, group := range []string{record.Innocent, record.Slowed} {
		for _, f := range undisturbedSocial.flows(scale, Full, group) {
			sums[group] += f.Rate(0)
			if f.Path == "read-user-timeline" && math.Abs(f.Rate(0)-125*8.0/23) > 1e-9 {
				t.Errorf("%v a second read user timelines", f.Rate(0))
			}
		}
	}
	if math.Abs(sums[record.Innocent]-75) > 1e-9 || math.Abs(sums[record.Slowed]-125) > 1e-9 || scale.Slowed.Threads != 4 {
		t.Errorf("%v, %d threads", sums, scale.Slowed.Threads)
	}
}

// A row has the requests of all of a group's paths, and tells of each path.
func TestRowOfPaths(t *testing.T) {
	var results []load.Result
	for path, fates := range map[string][]load.Fate{
		"repost":       {load.Answered, load.Refused},
		"compose-text": {load.Answered, load.Lost, load.Lost},
		"read-post":    {load.Answered},
	} {
		for _, fate := range fates {
			results = append(results, load.Result{Arrival: load.Arrival{Path: path}, Fate: fate})
		}
	}
	w := record.Window{To: Full.WarmUp, Target: Standard.Target, Patience: Standard.Patience}
	row := Run{Arm: wholeFence, Disturbance: undisturbedSocial}.row(w, results, record.Slowed)
	if row.Path != record.Slowed || row.Offered != 1 || row.Shed != 1 || row.Timeouts != 2 {
		t.Errorf("%+v", row)
	}
	if len(row.Paths) != 8 || row.Paths["repost"].Shed != 1 || row.Paths["compose-text"].Timeouts != 2 || row.Paths["delete-post"].Offered != 0 {
		t.Errorf("%+v", row.Paths)
	}
	if one := (Run{Arm: wholeFence, Disturbance: undisturbed}).row(w, results, record.Slowed); one.Paths != nil {
		t.Errorf("a row of one path tells of %v", one.Paths)
	}
}

// What makes no sense is left out of "all", and refused where it is asked for.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		study, other Study
		name         string
	}{
		{Study{Language: "java", Timeline: Full}, Study{Language: "cpp", Timeline: Full}, record.SocialSlow},
		{Study{Language: "cpp", Timeline: Lab}, Study{Language: "cpp", Timeline: Full}, "2 memory neighbours"},
		{Study{Language: "cpp", Timeline: Full}, Study{Language: "java", Timeline: Full}, record.ShopSlow},
		{Study{Language: "cpp", Timeline: Full}, Study{Language: "java", Timeline: Full}, record.MediaSlow},
	} {
		if _, err := c.study.Choose([]string{c.name}); err == nil || !strings.HasPrefix(err.Error(), c.name+": ") {
			t.Errorf("%s: %v", c.name, err)
		}
		all, err := c.study.Choose([]string{"all"})
		if err != nil || len(all) == 0 || slices.ContainsFunc(all, func(d Disturbance) bool { return d.Name == c.name }) {
			t.Errorf("%d of all, %v", len(all), err)
		}
		if _, err := c.other.Choose([]string{c.name}); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	s := Study{Scale: Standard, Arms: Languages["cpp"].Table, Disturbances: []Disturbance{undisturbedSocial}}
	got := names(s.repetition(0))
	slices.Sort(got)
	want := []string{"social network / alone"}
	for _, arm := range []string{record.Shared, "shared with expiry", "shared with shedding", "static bulkhead", "static with shedding", record.Fence} {
		want = append(want, "social network / "+arm)
	}
	if slices.Sort(want); !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
}

// A plan tells what the social network, the media service, the shop and saturation have of their own where they are measured,
// and is what it was before where they are not.
func TestPlanTellsTheScale(t *testing.T) {
	saturation := Disturbance{Name: record.Saturation, full: true, topology: twoPaths}
	for _, d := range []Disturbance{undisturbed, undisturbedSocial, undisturbedShop, undisturbedMedia, saturation} {
		text, err := json.Marshal(Study{Programs: Programs{Full: []string{"java"}}, Scale: Standard, Timeline: Full, Disturbances: []Disturbance{d}}.Plan())
		if err != nil {
			t.Fatal(err)
		}
		for own, services := range map[string]string{
			`"social_network_scale":{"workers":16,`:                       record.Social,
			`"media_scale":{"workers":16,`:                                record.Media,
			`"longer_timelines":{"shop":{"warm_up_ns":10000000000,`:       record.Shop,
			`"longer_timelines":{"saturation":{"warm_up_ns":20000000000,`: record.Saturation,
		} {
			if strings.Contains(string(text), own) != (d.Name == services) {
				t.Errorf("%s: %s", d.Name, text)
			}
		}
	}
}

// Saturation is about CPU time: there a virtual machine runs as it does when it is up for long.
func TestSaturationIsCompiled(t *testing.T) {
	both := Programs{Service: []string{"brief"}, Full: []string{"long"}}
	for want, got := range map[string][]string{
		"brief": both.program(Server{}, false), "long": both.program(Server{}, true), "cpp": Programs{Service: []string{"cpp"}}.program(Server{}, true),
	} {
		if got[0] != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}
