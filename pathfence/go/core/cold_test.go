package core_test

import (
	"fmt"
	"testing"

	"temper.dev/temper/pathfence/go/core"
)

// A service has just started, or was idle, and the first path that is asked for calls something that hangs. Whatever else
// is asked for then is served.
func TestAColdPathThatHangsLeavesWorkers(t *testing.T) {
	for _, c := range []struct {
		name   string
		hangs  string // known as a key of the configuration, or not
		others []string
	}{
		{"nothing is known", "x", []string{"y", "z"}},
		{"the others are known", "x", []string{"a", "b"}},
		{"what hangs is known", "a", []string{"y", "z"}},
		{"all are known", "a", []string{"b", "c"}},
	} {
		for _, workers := range []int64{4, 8, 12, 16, 64} {
			t.Run(fmt.Sprintf("%s, %d workers", c.name, workers), func(t *testing.T) {
				s := newScript("", "", core.Config{Workers: workers, Classes: classes("a", "b", "c")})
				s.after(120_000 * ms) // what is configured counts as seen at the start
				for range 3 * workers {
					s.arrive(c.hangs)
				}
				for i := range 20 {
					for _, key := range c.others {
						id := s.after(ms).arrive(key)
						if !s.granted() {
							t.Fatalf("%s waits, as the request %d of its path, while %s hangs; want a worker at once", key, i+1, c.hangs)
						}
						s.after(ms).done(id, core.OK)
					}
				}
			})
		}
	}
}

// Where nothing else is asked for, a path that takes what it should has all workers.
func TestAPathThatIsAloneHasAllWorkers(t *testing.T) {
	const workers = 16
	for _, key := range []string{"a", "x"} {
		t.Run(key, func(t *testing.T) {
			s := newScript("", "", core.Config{Workers: workers, Classes: classes("a", "b")})
			s.after(120_000 * ms)
			id := s.arrive(key)
			s.after(20*ms).done(id, core.OK)
			for i := range workers {
				if s.arrive(key); !s.granted() {
					t.Fatalf("with %d of %d workers in use, all by its own path, a request waits", i, workers)
				}
			}
		})
	}
}
