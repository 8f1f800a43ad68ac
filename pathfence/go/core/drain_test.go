package core_test

import (
	"testing"

	"temper.dev/temper/pathfence/go/core"
)

// A class of 8 workers whose requests take 2 s has 8 in flight and some that wait.
func TestDrain(t *testing.T) {
	for _, c := range []struct {
		name    string
		waiting int64
		want    core.Time
	}{
		{"nothing waits", 0, 2_000 * ms},
		{"as many wait as are served", 8, 4_000 * ms},
		{"three quarters more", 6, 3_500 * ms},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScript("", "", core.Config{Workers: 8, Target: 60_000 * ms, Classes: classes("a")})
			if d := s.f.Drain("a"); d != 0 {
				t.Errorf("before anything is known it is %d ns, want 0", d)
			}
			for range 40 {
				id := s.arrive("a")
				s.after(2_000*ms).done(id, core.OK)
			}
			for range 8 + c.waiting {
				s.arrive("a")
			}
			if d := s.f.Drain("a"); d < c.want*99/100 || d > c.want*101/100 {
				t.Errorf("it is %d ns, want %d", d, c.want)
			}
		})
	}
}
