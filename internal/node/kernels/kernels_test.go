package kernels

import "testing"

func TestHasSchedExt(t *testing.T) {
	for _, c := range []struct {
		release string
		has     bool
		fault   string
	}{
		{"6.12.0", true, ""},
		{"6.11.99-cloud", false, ""},
		{"7.0.13+deb13-cloud-amd64", true, ""},
		{"5.15.0-1052-aws", false, ""},
		{"10.0", true, ""},
		{"10.0.20348.2582", true, ""}, // Windows' version looks like one: who asks looks at the system first
		{"", false, "version  cannot be understood"},
		{"six", false, "version six cannot be understood"},
	} {
		has, err := HasSchedExt(c.release)
		fault := ""
		if err != nil {
			fault = err.Error()
		}
		if has != c.has || fault != c.fault {
			t.Errorf("%q: got %v, %q, want %v, %q", c.release, has, fault, c.has, c.fault)
		}
	}
	if has, err := HasSchedExt(First); !has || err != nil {
		t.Errorf("the first kernel that has it, %s: %v, %v", First, has, err)
	}
}
