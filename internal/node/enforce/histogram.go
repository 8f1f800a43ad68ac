package enforce

// Add adds another histogram's counts.
func (h *Hist) Add(other Hist) {
	for i, n := range other.Bucket {
		h.Bucket[i] += n
	}
}

// Count is the number of values.
func (h Hist) Count() uint64 {
	var sum uint64
	for _, n := range h.Bucket {
		sum += n
	}
	return sum
}

// AtLeast is the number of values of 2^power microseconds or more.
func (h Hist) AtLeast(power int) uint64 {
	var sum uint64
	for _, n := range h.Bucket[power+1:] {
		sum += n
	}
	return sum
}

// Percentile is a bound in microseconds that at least p per cent of the values lie below: the upper
// edge of a bucket, so up to twice the true value and never less. It is 0 without values. The last
// bucket has no edge; twice its lower one stands for it.
func (h Hist) Percentile(p float64) uint64 {
	total := h.Count()
	if total == 0 {
		return 0
	}
	var sum uint64
	for i, n := range h.Bucket {
		sum += n
		if float64(sum) >= p/100*float64(total) && sum > 0 {
			return 1 << i
		}
	}
	return 1 << (HistBuckets - 1)
}

// Add adds another CPU's figures.
func (s *Stats) Add(other Stats) {
	for i, t := range other.Tier {
		sum := &s.Tier[i]
		sum.RunNs += t.RunNs
		sum.Enqueued += t.Enqueued
		sum.PlacedIdle += t.PlacedIdle
		sum.Preempted += t.Preempted
		sum.StarvationTurns += t.StarvationTurns
		sum.Aged += t.Aged
		sum.Boosted += t.Boosted
		sum.MaxWaitNs = max(sum.MaxWaitNs, t.MaxWaitNs)
		sum.Wait.Add(t.Wait)
	}
	s.Gap.Add(other.Gap)
	s.LoanBack.Add(other.LoanBack)
	s.Rechecks += other.Rechecks
	s.SystemOver += other.SystemOver
	s.CriticalOver += other.CriticalOver
	s.Crowded += other.Crowded
	for i, ns := range other.LongestWaitNs {
		s.LongestWaitNs[i] = max(s.LongestWaitNs[i], ns)
	}
}
