// Package trial runs arms under disturbances: real processes on loopback, one run after the other.
//
// scale.go: how large the service is and how long a run takes. arms.go: who gets a worker. disturbances.go: what happens
// meanwhile. topology.go, social.go, shop.go, media.go: who calls whom. start.go: starts them. run.go: one run. turns.go: one
// in which arms take turns. study.go: all of them, interleaved.
package trial

import "time"

// Scale is the size of the service, of what it calls, and of what is asked of it.
type Scale struct {
	Workers  int           `json:"workers"`
	Target   time.Duration `json:"target_ns"`
	Patience time.Duration `json:"patience_ns"` // a client waits no longer
	Slowed   Path          `json:"slowed"`
	Innocent Path          `json:"innocent"`
	Surge    float64       `json:"surge_per_s"` // of the innocent path, while the other has a tenth of its rate
}

// Path is what clients ask for on one path, and its downstream.
type Path struct {
	Rate    float64       `json:"rate_per_s"`
	Work    time.Duration `json:"work_ns"` // mean, exponential; downstreams sleep: what is short is workers, not CPUs
	Threads int           `json:"threads"` // of the downstream
}

// Standard is the scale that is measured: half of the workers could carry both paths, half of them could not carry the
// surge, and slowed tenfold the downstream can serve a third of what it is asked for.
var Standard = Scale{
	Workers:  16,
	Target:   250 * time.Millisecond,
	Patience: time.Second,
	Slowed:   Path{Rate: 250, Work: 10 * time.Millisecond, Threads: 8},
	Innocent: Path{Rate: 150, Work: 10 * time.Millisecond, Threads: 64},
	Surge:    1000,
}

// Timeline is how long a run takes.
type Timeline struct {
	WarmUp    time.Duration `json:"warm_up_ns"` // a fence learns
	Disturbed time.Duration `json:"disturbed_ns"`
	After     time.Duration `json:"after_ns"`
	Late      time.Duration `json:"late_ns"` // where one in a hundred requests was sent later than this, they do not count
}

// Full is for records, Quick for a look. Lab is for records of the lab, where a second takes three, and nothing makes
// clients late but what they have to do: where an arm lets all requests time out, most of them need a new connection.
var (
	Full  = Timeline{5 * time.Second, 8 * time.Second, 3 * time.Second, 5 * time.Millisecond}
	Quick = Timeline{2 * time.Second, 4 * time.Second, 3 * time.Second, 5 * time.Millisecond}
	Lab   = Timeline{2 * time.Second, 4 * time.Second, 2 * time.Second, 50 * time.Millisecond}
)

func (t Timeline) over() time.Duration { return t.WarmUp + t.Disturbed }
func (t Timeline) end() time.Duration  { return t.over() + t.After }
