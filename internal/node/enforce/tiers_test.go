package enforce

import (
	"maps"
	"testing"

	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/node/config"
)

// fakeTiers counts writes.
type fakeTiers struct {
	entries                map[uint64]Assignment
	sets, deletes, publish int
}

func (f *fakeTiers) Entries() (map[uint64]Assignment, error) { return maps.Clone(f.entries), nil }
func (f *fakeTiers) Set(id uint64, a Assignment) error       { f.sets++; f.entries[id] = a; return nil }
func (f *fakeTiers) Delete(id uint64) error                  { f.deletes++; delete(f.entries, id); return nil }
func (f *fakeTiers) Publish()                                { f.publish++ }
func (f *fakeTiers) Reserve(uint64)                          {}
func (f *fakeTiers) Close() error                            { return nil }

func TestSyncWritesTheDifference(t *testing.T) {
	f := &fakeTiers{entries: map[uint64]Assignment{1: Assign(tier.System, ""), 2: Assign(tier.Critical, ""),
		3: Assign(tier.Background, ""), 5: Assign(tier.Standard, config.LimitsGap)}}
	want := map[uint64]Assignment{1: Assign(tier.System, ""), 2: Assign(tier.Background, ""),
		4: Assign(tier.Standard, ""), 5: Assign(tier.Standard, config.LimitsFreeze)}
	desired := func() map[uint64]Assignment { return want }
	changes, err := Sync(f, desired)
	if err != nil || changes != 4 || f.sets != 3 || f.deletes != 1 || f.publish != 1 || !maps.Equal(f.entries, want) {
		t.Errorf("changes %d, %v, %+v", changes, err, f)
	}
	if changes, err := Sync(f, desired); err != nil || changes != 0 || f.sets != 3 || f.publish != 1 {
		t.Errorf("second time: changes %d, %v, %+v", changes, err, f)
	}
}

func TestSyncKeepsAnEntryThatComesMeanwhile(t *testing.T) {
	f := &fakeTiers{entries: map[uint64]Assignment{}}
	_, err := Sync(f, func() map[uint64]Assignment {
		f.entries[7] = Assign(tier.Background, "") // temper run, in another process
		return nil
	})
	if err != nil || f.entries[7] != Assign(tier.Background, "") {
		t.Errorf("%v, %+v", err, f)
	}
}

func TestPercentile(t *testing.T) {
	var h Hist
	if h.Percentile(99) != 0 {
		t.Error("a percentile of nothing is not 0")
	}
	h.Bucket[0], h.Bucket[4], h.Bucket[10] = 50, 49, 1
	for p, want := range map[float64]uint64{50: 1, 51: 16, 99: 16, 99.5: 1024, 100: 1024} {
		if got := h.Percentile(p); got != want {
			t.Errorf("p%v = %d, want %d", p, got, want)
		}
	}
	for power, want := range map[int]uint64{3: 50, 4: 1, 9: 1, 10: 0} {
		if got := h.AtLeast(power); got != want {
			t.Errorf("at least 2^%d us: %d, want %d", power, got, want)
		}
	}
	h = Hist{}
	h.Bucket[HistBuckets-1] = 1
	if got := h.Percentile(50); got != 1<<(HistBuckets-1) {
		t.Errorf("last bucket: %d", got)
	}
}
