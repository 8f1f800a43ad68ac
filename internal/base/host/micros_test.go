package host

import "testing"

func TestMicros(t *testing.T) {
	for us, want := range map[uint64][2]string{
		0:         {"-", "0 us"},
		256:       {"<256 us", "256 us"},
		16384:     {"<16.4 ms", "16.4 ms"},
		2_097_152: {"<2.1 s", "2.1 s"},
	} {
		if got := [2]string{Below(us), Micros(us)}; got != want {
			t.Errorf("%d: %q, want %q", us, got, want)
		}
	}
}
