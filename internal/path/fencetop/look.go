package fencetop

import (
	"context"
	"sync"
	"time"
)

// Look is what was seen of a target.
type Look struct {
	Target  string    `json:"target"`
	Time    time.Time `json:"time"`
	Error   string    `json:"error,omitempty"`
	State   *State    `json:"state,omitempty"` // null: it could not be asked
	Changes []Change  `json:"per_second,omitempty"`
}

// Change is what has happened to a class since the look before, each second.
type Change struct {
	Class   string  `json:"class"`
	Granted float64 `json:"granted"`
	Shed    float64 `json:"shed"`
	Missed  float64 `json:"missed"`
	Failed  float64 `json:"failed"`
}

const atATime = 16 // targets that are asked

// Round asks all targets, many at a time.
func Round(ctx context.Context, targets []string, ask Ask) []Look {
	looks := make([]Look, len(targets))
	places := make(chan struct{}, atATime)
	var all sync.WaitGroup
	for i, target := range targets {
		all.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			s, err := read(ctx, target, ask)
			looks[i] = Look{Target: target, Time: time.Now(), State: s}
			if err != nil {
				looks[i].Error = err.Error()
			}
		})
	}
	all.Wait()
	return looks
}

// Compare fills in what has changed since the round before, of the targets that were asked then, too.
func Compare(before, now []Look) {
	earlier := map[string]Look{}
	for _, l := range before {
		earlier[l.Target] = l
	}
	for i := range now {
		before := earlier[now[i].Target]
		if before.State == nil || now[i].State == nil {
			continue
		}
		was := map[string]Class{}
		for _, c := range before.State.Classes {
			was[c.Name] = c
		}
		seconds := now[i].Time.Sub(before.Time).Seconds()
		for _, c := range now[i].State.Classes {
			b := was[c.Name]
			// Counts that have shrunk are those of a service that was started again.
			if c.Granted < b.Granted || c.Shed < b.Shed || c.Missed < b.Missed || c.Failed < b.Failed {
				b = Class{}
			}
			rate := func(before, now int64) float64 { return float64(now-before) / seconds }
			now[i].Changes = append(now[i].Changes, Change{c.Name, rate(b.Granted, c.Granted), rate(b.Shed, c.Shed), rate(b.Missed, c.Missed), rate(b.Failed, c.Failed)})
		}
	}
}
