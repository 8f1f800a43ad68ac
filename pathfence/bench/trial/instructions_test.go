package trial

import "testing"

func TestParseCollected(t *testing.T) {
	said := "==42== Callgrind, a call-graph generating cache profiler\n==42== \n==42== Events    : Ir\n==42== Collected : 123456789\n==42==\n"
	if n, err := parseCollected(said); err != nil || n != 123456789 {
		t.Errorf("%d, %v", n, err)
	}
	for _, said := range []string{"", "==42== Collected : many\n"} {
		if _, err := parseCollected(said); err == nil {
			t.Errorf("%q is no error", said)
		}
	}
}
