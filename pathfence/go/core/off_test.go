package core

import (
	"slices"
	"testing"
)

// Off, nothing is bounded where nothing would be without the fence; on again, nothing is granted until there are fewer.
func TestOffBoundsNothing(t *testing.T) {
	f, err := New(Config{Workers: 2, Unbounded: true}, 0)
	if err != nil {
		t.Fatal(err)
	}
	granted := func(events []Event) (n int) {
		for _, e := range events {
			if e.Do == "grant" {
				n++
			}
		}
		return n
	}
	arrive := func(id int64) int { return granted(f.Arrive(0, Request{ID: id, Key: "a"})) }
	for _, step := range []struct {
		name string
		do   func() int
		want int
	}{
		{"on, one", func() int { return arrive(1) }, 1},
		{"on, another of what is not known", func() int { return arrive(2) }, 0},
		{"off, those that wait", func() int { return granted(f.Switch(0, true)) }, 1},
		{"off, beyond the workers", func() int { return arrive(3) + arrive(4) + arrive(5) }, 3},
		{"on, nothing more", func() int { return granted(f.Switch(0, false)) + arrive(6) }, 0},
		{"on, while there are as many as workers", func() int { return granted(f.Done(0, 1, OK)) + granted(f.Done(0, 2, OK)) + granted(f.Done(0, 3, OK)) }, 0},
		{"on, again", func() int { return granted(f.Done(0, 4, OK)) + granted(f.Done(0, 5, OK)) }, 1},
	} {
		if got := step.do(); got != step.want {
			t.Errorf("%s: %d are granted, want %d", step.name, got, step.want)
		}
	}
}

// Off, whoever came first is served first, nested or not.
func TestOffServesInOrderOfArrival(t *testing.T) {
	f, err := New(Config{Workers: 1, Off: true}, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := []int64{1, 2, 3, 4, 5, 6}
	for i, r := range []Request{{Key: "a"}, {Key: "b", Depth: 1}, {Key: "a"}, {Key: "c", Depth: 2}, {Key: "b", Depth: 1}, {Key: "c"}} {
		r.ID = want[i]
		f.Arrive(Time(i), r)
	}
	got := []int64{1}
	for range want[1:] {
		for _, e := range f.Done(10, got[len(got)-1], OK) {
			got = append(got, e.ID)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("they are served in the order %v, want %v", got, want)
	}
}
