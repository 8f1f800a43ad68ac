package host

import "fmt"

// Below writes the upper edge of a bucket, in microseconds: what was counted lies below it. 0: nothing was.
func Below(us uint64) string {
	if us == 0 {
		return "-"
	}
	return "<" + Micros(us)
}

// Micros writes microseconds in the unit that fits.
func Micros(us uint64) string {
	switch {
	case us < 1000:
		return fmt.Sprintf("%d us", us)
	case us < 1_000_000:
		return fmt.Sprintf("%.1f ms", float64(us)/1e3)
	}
	return fmt.Sprintf("%.1f s", float64(us)/1e6)
}
