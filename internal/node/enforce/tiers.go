package enforce

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf"

	"temper.dev/temper/internal/base/tier"
)

// Assign is the entry of a cgroup with a tier and, unless limits is "", a limits mode of its own, one of config.PodLimits.
func Assign(t tier.Tier, limits string) Assignment {
	return Assignment{Tier: uint16(t), Limits: uint16(slices.Index(limitsModes, limits) + 1)}
}

// TierMap is the attached scheduler's map of assignments, by cgroup id, and what else of its maps is written while it runs.
type TierMap interface {
	Entries() (map[uint64]Assignment, error)
	Set(id uint64, a Assignment) error
	Delete(id uint64) error
	// Publish makes the scheduler look at the map again.
	Publish()
	// Reserve is up to how many thousandths of a CPU critical comes first, where there is a reservation (Info.Reservation).
	Reserve(milliCPU uint64)
	Close() error
}

// Sync makes the map equal to what desired returns, with as few writes as that takes, and publishes
// the result if anything changed. It lists the map before it asks what is desired, so that an entry
// which another process (temper run) adds for a cgroup of its own meanwhile is not taken for a stale one.
func Sync(m TierMap, desired func() map[uint64]Assignment) (changes int, err error) {
	have, err := m.Entries()
	if err != nil {
		return 0, err
	}
	want := desired()
	for id, a := range want {
		if old, ok := have[id]; ok && old == a {
			continue
		}
		if err := m.Set(id, a); err != nil {
			return changes, err
		}
		changes++
	}
	for id := range have {
		if _, ok := want[id]; ok {
			continue
		}
		if err := m.Delete(id); err != nil {
			return changes, err
		}
		changes++
	}
	if changes > 0 {
		m.Publish()
	}
	return changes, nil
}

// pinnedTiers is the TierMap in the kernel.
type pinnedTiers struct {
	tiers   *ebpf.Map
	control *control
}

// OpenTierMap opens the maps pinned in dir; ErrNotPinned if there are none.
func OpenTierMap(dir string) (TierMap, error) {
	var info Info
	if err := readInfo(dir, &info); err != nil {
		return nil, err
	}
	tiers, err := openPinned(dir, "tiers")
	if err != nil {
		return nil, err
	}
	control, err := openControl(dir)
	if err != nil {
		tiers.Close()
		return nil, err
	}
	return &pinnedTiers{tiers: tiers, control: control}, nil
}

func (p *pinnedTiers) Entries() (map[uint64]Assignment, error) {
	entries := map[uint64]Assignment{}
	var id uint64
	var a Assignment
	iterator := p.tiers.Iterate()
	for iterator.Next(&id, &a) {
		entries[id] = a
	}
	if err := iterator.Err(); err != nil {
		return nil, fmt.Errorf("cannot list map tiers: %w", err)
	}
	return entries, nil
}

func (p *pinnedTiers) Set(id uint64, a Assignment) error {
	if err := p.tiers.Put(id, a); err != nil {
		return fmt.Errorf("cannot write map tiers: %w", err)
	}
	return nil
}

func (p *pinnedTiers) Delete(id uint64) error {
	if err := p.tiers.Delete(id); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("cannot delete from map tiers: %w", err)
	}
	return nil
}

func (p *pinnedTiers) Publish() { p.control.publish() }

func (p *pinnedTiers) Reserve(milliCPU uint64) { p.control.reserve(milliCPU) }

func (p *pinnedTiers) Close() error { return errors.Join(p.tiers.Close(), p.control.close()) }
