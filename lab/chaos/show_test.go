package chaos

import (
	"strings"
	"testing"

	"temper.dev/temper/internal/node/observe"
)

func TestTableNamesEachViolation(t *testing.T) {
	r := Record{Kernel: "6.18", CPUs: 3}
	r.Add(Report{Seed: 2, Workers: 4, StalledMS: map[string]float64{"/a/c": 300}, Violations: []string{"one is lost", "another is lost"}})
	r.Add(Report{
		Seed: 1, Workers: 30, Seconds: 2, Operations: map[string]int{"move": 3, "kill": 2}, StalledMS: map[string]float64{"/a/b": 12, "/b/c": 250.4},
		Observed: []observe.Report{{MaxUS: 80}, {MaxUS: 120}},
	})
	var out strings.Builder
	if err := Write(&out, r); err != nil {
		t.Fatal(err)
	}
	row := strings.Join(strings.Fields(strings.Split(out.String(), "\n")[1]), " ")
	if row != "1 5 30 250 120 0" {
		t.Errorf("the first row is %q", row)
	}
	for _, line := range []string{
		"2 seeds, 34 workers, 2 s of guest time\n", "5 operations: kill 2, move 3\n", "in ms: a 300, b 250\n", "waited: 120 us\n",
		"seed 2: one is lost\n", "seed 2: another is lost\n", "1 of 2 seeds with violations\n",
	} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("%q is missing in\n%s", line, out.String())
		}
	}
	if broken := r.Broken(); len(broken) != 1 || broken[0] != 2 {
		t.Errorf("broken are %v", broken)
	}
}
