package enforce

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/bits"
	"path/filepath"
	"slices"

	"github.com/cilium/ebpf"
	"k8s.io/utils/cpuset"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/node/config"
)

// ErrNotPinned: no scheduler has left maps there, so none is attached.
var ErrNotPinned = errors.New("no maps of scx_temper are pinned")

// first is the key of the only entry of the array maps.
const first = uint32(0)

// Snapshot is what the maps of the attached scheduler say.
type Snapshot struct {
	Info    Info
	Control Control
	Stats   Stats // sum over CPUs
	Waits   Waits
	Exit    ExitInfo
	Tiers   map[uint64]Assignment // by cgroup id
	Limits  []Limit               // of the cgroups that have one
	Hogs    []Hog                 // by CPU
}

// ReadPinned reads all maps pinned in dir; ErrNotPinned if there are none.
func ReadPinned(dir string) (*Snapshot, error) {
	s := &Snapshot{}
	if err := readInfo(dir, &s.Info); err != nil {
		return nil, err
	}
	if err := read(dir, "control", &s.Control); err != nil {
		return nil, err
	}
	if err := read(dir, "exit_info", &s.Exit); err != nil {
		return nil, err
	}
	var perCPU []Stats
	if err := read(dir, "stats", &perCPU); err != nil {
		return nil, err
	}
	for _, stats := range perCPU {
		s.Stats.Add(stats)
	}
	if err := read(dir, "waits", &s.Waits); err != nil {
		return nil, err
	}
	tiers, err := OpenTierMap(dir)
	if err != nil {
		return nil, err
	}
	defer tiers.Close()
	if s.Tiers, err = tiers.Entries(); err != nil {
		return nil, err
	}
	limits, err := readAll[Limit](dir, "limits")
	if err != nil {
		return nil, err
	}
	s.Limits = slices.DeleteFunc(limits, func(l Limit) bool { return l.QuotaNs == 0 })
	s.Hogs, err = readAll[Hog](dir, "hogs")
	return s, err
}

// readAll reads all of an array with one call of the kernel.
func readAll[T any](dir, name string) ([]T, error) {
	m, err := openPinned(dir, name)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	slots, all := make([]uint32, m.MaxEntries()), make([]T, m.MaxEntries())
	if _, err := m.BatchLookup(new(ebpf.MapBatchCursor), slots, all, nil); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return nil, fmt.Errorf("cannot read map %s: %w", filepath.Join(dir, name), err)
	}
	return all, nil
}

func readInfo(dir string, info *Info) error {
	if err := read(dir, "info", info); err != nil {
		return err
	}
	if info.ABI != ABI {
		return exit.New(exit.Failed, "install temper and scx_temper of one version, then restart the agent",
			"the attached scheduler has ABI %d, this temper knows %d", info.ABI, ABI)
	}
	return nil
}

func read(dir, name string, value any) error {
	m, err := openPinned(dir, name)
	if err != nil {
		return err
	}
	defer m.Close()
	if err := m.Lookup(first, value); err != nil {
		return fmt.Errorf("cannot read map %s: %w", filepath.Join(dir, name), err)
	}
	return nil
}

func openPinned(dir, name string) (*ebpf.Map, error) {
	m, err := ebpf.LoadPinnedMap(filepath.Join(dir, name), nil)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w in %s", ErrNotPinned, dir)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open map %s: %w", filepath.Join(dir, name), err)
	}
	return m, nil
}

// Text is the part of a C string before its NUL, as it may be shown: the kernel puts names of threads into such.
func Text(c []byte) string {
	text, _, _ := bytes.Cut(c, []byte{0})
	return host.Printable(string(text))
}

// FenceCPUs are the CPUs of the fence.
func (i *Info) FenceCPUs() cpuset.CPUSet {
	var cpus []int
	for word, mask := range i.Fence {
		for ; mask != 0; mask &= mask - 1 {
			cpus = append(cpus, word*64+bits.TrailingZeros64(mask))
		}
	}
	return cpuset.New(cpus...)
}

// Loans is the fence's, in the configuration's words.
func (i *Info) Loans() string {
	return map[uint32]string{LoanGaps: config.LoansGaps, LoanIdle: config.LoansIdle, LoanNever: config.LoansNever}[i.Loan]
}

// limitsModes are the configuration's words, each at the place of its number.
var limitsModes = []string{LimitsPaced: config.LimitsPaced, LimitsGap: config.LimitsGap, LimitsFreeze: config.LimitsFreeze, LimitsIgnore: config.LimitsIgnore}

// LimitsMode is the node's, in the configuration's words.
func (i *Info) LimitsMode() string { return limitsModes[i.Limits] }

// LimitsMode is how the limit is kept, in the configuration's words.
func (l *Limit) LimitsMode() string { return limitsModes[l.Mode] }

// SMT is the scheduler's, in the configuration's words.
func (i *Info) SMT() string {
	if i.SMTExclusive != 0 {
		return config.SMTExclusive
	}
	return config.SMTShare
}
