package ladder

import (
	"math"
	"testing"
	"time"
)

func TestUseIsOfThePeriodsThatPassed(t *testing.T) {
	begin := time.Unix(0, 0)
	var u use
	// 150 ms a period, one of 300, and a sample that is half a period late.
	used := time.Duration(0)
	for i := range 12 {
		at := begin.Add(time.Duration(i) * 100 * time.Millisecond)
		if i == 11 {
			at = at.Add(50 * time.Millisecond)
			used += 75 * time.Millisecond
		}
		u = append(u, useSample{at, used})
		used += 150 * time.Millisecond
		if i == 3 {
			used += 150 * time.Millisecond
		}
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: got %v, want %v", what, got, want)
		}
	}
	const quota = 0.150
	near("mean", u.mean(quota), (11.5+1)/11.5)
	near("most in one period", u.most(quota, 1), 2)
	near("most in ten periods", u.most(quota, 10), 1.1)
	near("of one sample", u[:1].mean(quota), 0)
}
