package guard

import "time"

// Counters are what a node has counted since its scheduler was attached.
type Counters struct {
	At        time.Time // of the report
	CPUs      float64
	Seconds   float64 // of CPU, that the tiers above background have used
	Waits     int64   // of the standard tier
	LongWaits int64
}

// Meter makes loads of the counters of successive reports. The zero Meter has seen none.
type Meter struct {
	nodes map[string]*measured
}

type measured struct {
	from Counters
	load *Load
}

// between is the least time that a load is of: agents report at every change, too.
const between = 30 * time.Second

// Read takes a node's newest report, and returns its load; nil: there is none yet.
func (m *Meter) Read(node string, now Counters) *Load {
	if m.nodes == nil {
		m.nodes = map[string]*measured{}
	}
	n := m.nodes[node]
	if n == nil || now.Seconds < n.from.Seconds || now.Waits < n.from.Waits || now.LongWaits < n.from.LongWaits || now.At.Before(n.from.At) {
		m.nodes[node] = &measured{from: now} // the scheduler was attached anew
		return nil
	}
	if past := now.At.Sub(n.from.At); past >= between && now.CPUs > 0 {
		load := &Load{Use: (now.Seconds - n.from.Seconds) / past.Seconds() / now.CPUs}
		if waits := now.Waits - n.from.Waits; waits > 0 {
			load.LongWaits = float64(now.LongWaits-n.from.LongWaits) / float64(waits)
		}
		n.from, n.load = now, load
	}
	return n.load
}

// Keep forgets all nodes but these.
func (m *Meter) Keep(nodes map[string]bool) {
	for name := range m.nodes {
		if !nodes[name] {
			delete(m.nodes, name)
		}
	}
}
