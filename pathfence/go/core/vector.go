package core

import (
	"fmt"
	"slices"
)

// Vector is a scenario with the decisions that it must lead to; ../../spec/vectors/README.md describes the file.
type Vector struct {
	Name   string `json:"name"`
	About  string `json:"about"`
	Config Config `json:"config"`
	Steps  []Step `json:"steps"`
}

// Step is one event, and what follows from it.
type Step struct {
	At       Time    `json:"at"`
	Do       string  `json:"do"` // arrive, resume, done, edge, tick, reload, off, on, state
	ID       int64   `json:"id,omitempty"`
	Key      string  `json:"key,omitempty"`
	Deadline Time    `json:"deadline,omitempty"`
	Shortens bool    `json:"shortens,omitempty"`
	Depth    int64   `json:"depth,omitempty"`
	Parent   int64   `json:"parent,omitempty"`
	Outcome  Outcome `json:"outcome,omitempty"` // of done; without one it is ok
	Edge     string  `json:"edge,omitempty"`
	Config   *Config `json:"config,omitempty"`
	Refused  bool    `json:"refused,omitempty"` // the reload is not valid, and changes nothing
	Then     []Event `json:"then,omitempty"`
	States   []State `json:"states,omitempty"`
}

// Play carries out a step, and gives it back with what followed.
func (f *Fence) Play(s Step) (Step, error) {
	s.Then, s.States, s.Refused = nil, nil, false
	switch s.Do {
	case "arrive":
		s.Then = f.Arrive(s.At, Request{ID: s.ID, Key: s.Key, Deadline: s.Deadline, Shortens: s.Shortens, Depth: s.Depth, Parent: s.Parent})
	case "resume":
		s.Then = f.Resume(s.At, s.ID, s.Key)
	case "done":
		outcome := s.Outcome
		if outcome == "" {
			outcome = OK
		}
		s.Then = f.Done(s.At, s.ID, outcome)
	case "edge":
		s.Then = f.Edge(s.At, s.ID, s.Edge)
	case "tick":
		s.Then = f.Tick(s.At)
	case "reload":
		then, err := f.Reload(s.At, *s.Config)
		s.Then, s.Refused = then, err != nil
	case "off", "on":
		s.Then = f.Switch(s.At, s.Do == "off")
	case "state":
		s.States = f.States()
	default:
		return s, fmt.Errorf("no step does %q", s.Do)
	}
	s.Then = slices.Clone(s.Then)
	return s, nil
}
