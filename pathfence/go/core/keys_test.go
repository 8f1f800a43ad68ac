package core_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"temper.dev/temper/pathfence/go/core"
)

// What is known of each class's keys: of the configuration, learned, being learned.
func TestKeysOfClasses(t *testing.T) {
	cfg := core.Config{Workers: 8, Buckets: 1, Classes: []core.ClassConfig{{Name: "a", Keys: []string{"y", "x"}}}}
	for i := range 20 {
		cfg.Classes = append(cfg.Classes, core.ClassConfig{Name: fmt.Sprint("c", i), Keys: []string{fmt.Sprint("k", i)}})
	}
	for i := range 20 {
		cfg.Classes[1].Keys = append(cfg.Classes[1].Keys, fmt.Sprint("many", 10+i))
	}
	s := newScript("", "", cfg)
	serve := func(key, edge string, times int) {
		for range times {
			id := s.after(ms).arrive(key)
			s.play(core.Step{At: s.now, Do: "edge", ID: id, Edge: edge})
			s.done(id, core.OK)
		}
	}
	serve("learned", "store", 8)
	serve("too", "store", 8)
	serve("almost", "store", 7)
	s.arrive("not valid!")
	keys := s.f.Keys()
	for _, c := range []struct {
		class string
		want  []string
	}{
		{"a", []string{"x", "y"}},
		{"~u0", []string{"almost"}},
		{"~calls:store", []string{"learned", "too"}},
		{"c1", []string{"k1"}},
		{"none", nil},
	} {
		t.Run(c.class, func(t *testing.T) {
			if !slices.Equal(keys[c.class], c.want) {
				t.Errorf("%q, want %q", keys[c.class], c.want)
			}
		})
	}
	if n := len(keys["c0"]); n != 16 || !slices.IsSorted(keys["c0"]) || keys["c0"][0] != "k0" {
		t.Errorf("of 21 keys %d are shown: %q; want the first 16", n, keys["c0"])
	}
	if len(keys) != 23 {
		t.Errorf("there are keys of %q, want of 23 classes", slices.Sorted(maps.Keys(keys)))
	}
}
