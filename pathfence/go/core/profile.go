package core

// Measured is what a class did at one concurrency, held for some time.
type Measured struct {
	Concurrency int64
	Good        int64 // requests that ended well and in time, each second
}

// Shape is what a curve of goodput over concurrency shows.
type Shape int

// The shapes.
const (
	Plateau Shape = iota // goodput rises up to the knee, and no further
	Rising               // it rises to the end: no knee shows
	Falling              // more concurrency makes less goodput: the best is the highest point
)

// Profile finds the knee of a class as the fence finds it online (Fit, in algorithm.md), of points measured offline,
// and the limit to start from. No limit (0) where goodput rises to the end.
func Profile(points []Measured) (at, limit int64, shape Shape) {
	var ring []point
	best := Measured{}
	for _, p := range points {
		ring = append(ring, point{n: p.Concurrency * 1000, good: p.Good})
		if p.Good > best.Good {
			best = p
		}
	}
	if falling(ring) {
		return best.Concurrency, best.Concurrency, Falling
	}
	k, rising := knee(ring)
	if rising {
		return k, 0, Rising
	}
	return k, k + max(1, k/4), Plateau
}
