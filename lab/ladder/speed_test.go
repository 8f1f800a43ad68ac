package ladder

import (
	"strings"
	"testing"
)

func TestSteady(t *testing.T) {
	for _, test := range []struct {
		name            string
		alone, together []float64
		refused         string
	}{
		{"equal", []float64{1e6, 1e6}, []float64{1e6, 1e6}, ""},
		{"one CPU", []float64{1e6}, []float64{1e6}, ""},
		{"within 5 %", []float64{1.00e6, 1.04e6}, []float64{1.02e6, 1.05e6}, ""},
		{"one CPU is faster", []float64{1.00e6, 1.06e6}, []float64{1.00e6, 1.06e6},
			"by 6 %, and no ladder on it would mean anything; in thousand iterations a second: alone CPU 0 1000, CPU 1 1060; all at once CPU 0 1000, CPU 1 1060"},
		// What an idle loop that gives its turn away does: the CPUs are equal, but not to themselves.
		{"faster alone", []float64{2.5e6, 2.5e6}, []float64{1e6, 1e6}, "by 150 %"},
		// The split that the turns had under a quantum of the PIT.
		{"a fast CPU", []float64{12.7e6, 12.7e6, 31.5e6}, []float64{12.6e6, 12.6e6, 31.3e6}, "CPU 2 31300"},
	} {
		err := steady(test.alone, test.together)
		switch {
		case test.refused == "" && err != nil:
			t.Errorf("%s: %v", test.name, err)
		case test.refused != "" && (err == nil || !strings.Contains(err.Error(), test.refused)):
			t.Errorf("%s: got %v, want %q", test.name, err, test.refused)
		}
	}
}
