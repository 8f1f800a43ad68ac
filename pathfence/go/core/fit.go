package core

// spread says whether the points differ enough in concurrency to tell anything.
func spread(ring []point) bool {
	low, high, sum := ring[0].n, ring[0].n, int64(0)
	for _, p := range ring {
		low, high, sum = min(low, p.n), max(high, p.n), sum+p.n
	}
	return (high-low)*4*int64(len(ring)) > sum
}

// falling says whether goodput falls as concurrency rises: a correlation below -1/2.
func falling(ring []point) bool {
	k := int64(len(ring))
	n, g := int64(0), int64(0)
	for _, p := range ring {
		n += p.n
		g += p.good
	}
	scaleN, scaleG := max(1, n/k/100), max(1, g/k/100)
	cov, varN, varG := int64(0), int64(0), int64(0)
	for _, p := range ring {
		a, b := (p.n-n/k)/scaleN, (p.good-g/k)/scaleG
		cov += a * b
		varN += a * a
		varG += b * b
	}
	return cov < 0 && varG > 0 && varN > 0 && cov*cov/varN*4 > varG
}

// knee fits goodput = P min(n/k, 1) and returns the k that fits best; the
// smallest of equals. Rising says that no plateau shows.
func knee(ring []point) (best int64, rising bool) {
	top, scale := int64(0), int64(1)
	for _, p := range ring {
		top = max(top, p.n)
		scale = max(scale, p.good/10_000)
	}
	last := (top + 999) / 1000
	errs := make([]int64, last+1)
	least := int64(-1)
	for k := int64(1); k <= last; k++ {
		gf, ff := int64(0), int64(0)
		for _, p := range ring {
			x := min(p.n/k, 1000)
			gf += p.good / scale * x
			ff += x * x
		}
		for _, p := range ring {
			x := min(p.n/k, 1000)
			e := p.good/scale - gf*x/ff
			errs[k] += e * e
		}
		if least < 0 || errs[k] < least {
			least, best = errs[k], k
		}
	}
	return best, best == last
}
