package main

import (
	"errors"
	"time"
)

// heartbeat is a flag's value: whole seconds, as scx_temper takes them.
type heartbeat time.Duration

func (h *heartbeat) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil || d != 0 && (d < 2*time.Second || d > time.Hour || d%time.Second != 0) {
		return errors.New("use whole seconds from 2s to 1h, or 0 for ever")
	}
	*h = heartbeat(d)
	return nil
}

func (h *heartbeat) String() string { return time.Duration(*h).String() }

func (h *heartbeat) Type() string { return "duration" }
