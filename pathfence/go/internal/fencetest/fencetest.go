// Package fencetest has what tests of fences have in common.
package fencetest

import (
	"testing"
	"time"

	pathfence "temper.dev/temper/pathfence/go"
)

// Awaits looks at a fence until it is as it should be. That takes a minute at most.
func Awaits(t *testing.T, fence *pathfence.Fence, what string, holds func(pathfence.State) bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		now := fence.State()
		if holds(now) {
			return
		}
		if time.Now().After(end) {
			t.Errorf("a minute later it is not so that %s: %+v", what, now)
			return
		}
	}
}
