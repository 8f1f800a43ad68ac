package core

import (
	"slices"
	"testing"
)

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
