//go:build guest

package guest

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

	"temper.dev/temper/internal/base/cgroup"
	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/node/config"
	"temper.dev/temper/internal/node/enforce"
)

// A tree of cgroups of any depth grows and shrinks, is mapped, unmapped, limited and freed at random. What the scheduler
// knows of each cgroup is what a plain model says: the nearest ancestor's tier, mode, and limit.
func TestWhatIsKnownOfDeepTrees(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Log("seed: ", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	joinSystem(t)
	attach(t)
	tiers, err := enforce.OpenTierMap(root.Pins())
	if err != nil {
		t.Fatal(err)
	}
	defer tiers.Close()
	tree := newTree(t, "/tree")
	slots := openSlots(t)
	deepest := 0
	for step := range 400 {
		cg := tree.any(r)
		deepest = max(deepest, len(cgroup.Ancestors(cg)))
		switch n := r.IntN(12); {
		case n < 5:
			tree.grow(t, tree.deepest(r))
		case n < 6:
			tree.shrink(t, r)
		case n < 8:
			a := enforce.Assign(tier.Tier(r.IntN(tier.Count)), []string{"", config.LimitsGap, config.LimitsFreeze}[r.IntN(3)])
			tree.tiers[cg] = a
			if err := tiers.Set(tree.ids[cg], a); err != nil {
				t.Fatal(err)
			}
			tiers.Publish()
		case n < 9:
			if _, mapped := tree.tiers[cg]; mapped {
				delete(tree.tiers, cg)
				if err := tiers.Delete(tree.ids[cg]); err != nil {
					t.Fatal(err)
				}
				tiers.Publish()
			}
		case n < 11:
			tree.limited[cg] = true
			write(t, root.Cgroup(cg+"/cpu.max"), "50000 100000")
		default:
			delete(tree.limited, cg)
			write(t, root.Cgroup(cg+"/cpu.max"), "max")
		}
		leaf := tree.leaf(r)
		runIn(t, leaf)
		// Before 6.17 a limit is read each 0.1 s, while tasks of the cgroup run; all else is known at once, on all kernels.
		want := tree.want(leaf)
		if got := slots.known(t, leaf); got.policy != want.policy {
			t.Fatalf("seed %d, step %d, depth %d: of %s it knows %+v, want %+v", seed, step, len(cgroup.Ancestors(leaf)), leaf, got, want)
		}
		eventually(t, fmt.Sprintf("seed %d, step %d, depth %d: of %s it knows %+v", seed, step, len(cgroup.Ancestors(leaf)), leaf, want),
			func() bool { runIn(t, leaf); return slots.known(t, leaf) == want })
	}
	t.Logf("%d cgroups, up to %d deep", len(tree.ids), deepest)
	if deepest < 40 {
		t.Errorf("the tree is only %d deep", deepest)
	}
}

// A user who was given a subtree nests as deep as he likes: its tier and its limit hold at any depth, be it one at which the
// scheduler knows no cgroup.
func depthIsNoWayOut(t *testing.T) {
	n := runtime.NumCPU()
	for _, depth := range []int{23, 30, 200, 300} {
		t.Run(fmt.Sprint(depth), func(t *testing.T) {
			const quota, period = 30 * time.Millisecond, 100 * time.Millisecond
			limit(t, "/standard/limited", quota, period)
			deep := "/standard/limited" + strings.Repeat("/d", depth)
			controlledCgroup(t, deep)
			// Nor are limits of his own, at more levels than anybody needs.
			for i, cg := range cgroup.Ancestors(deep) {
				if i > 3 && i%3 == 0 {
					write(t, root.Cgroup(cg+"/cpu.max"), "90000 100000")
				}
			}
			group := spin(t, deep, n)
			list := watchUse(t, group, period, 20)
			if got, due := cpusUsed(list[5:]), float64(quota)/float64(period); got > due*1.01 || got < due*0.9 {
				t.Errorf("limited to %.2f CPUs it uses %.3f", due, got)
			}
			for _, s := range group {
				s.end()
			}
			low := "/background" + strings.Repeat("/d", depth)
			controlledCgroup(t, low)
			critical, background := spin(t, "/critical", n), spin(t, low, n)
			if got := used(t, second(), critical, background); got[1] > mostBackground {
				t.Errorf("background has %.3f beside critical", got[1])
			}
		})
	}
}

// Who nests his cgroups a thousand deep, with a limit at each level, keeps critical waiting for what the kernel does at each
// level, and the scheduler does at the first of them. The last limit that it knows is kept. Before there was a last, critical
// was 40 s late.
func deepCgroupsDoNotDelayCritical(t *testing.T) {
	const depth, mostP99, longest = 1000, 40 * time.Millisecond, 300 * time.Millisecond
	deep := "/background" + strings.Repeat("/d", depth)
	controlledCgroup(t, deep)
	for _, cg := range cgroup.Ancestors(deep)[2:] {
		write(t, root.Cgroup(cg+"/cpu.max"), "90000 100000")
	}
	last := cgroup.Ancestors(deep)[enforce.MaxLevels]
	write(t, root.Cgroup(last+"/cpu.max"), "80000 100000")
	spin(t, deep, 2*runtime.NumCPU())
	eventually(t, "the last limit that is known is felt", func() bool { return limitOf(t, last).Throttles > 10 })
	late := measureLateness(t, 300)
	t.Logf("critical is late by %v; want p99 within %v, longest within %v", late, mostP99, longest)
	if late.p99 > mostP99 || late.longest > longest {
		t.Error("it is late for longer")
	}
	if n := look(t).Crowded; n != depth+1-enforce.MaxLevels {
		t.Errorf("%d cgroups are crowded, want %d", n, depth+1-enforce.MaxLevels)
	}
}

// tree is a model of a subtree of cgroups.
type tree struct {
	top     string
	ids     map[string]uint64
	order   []string // as they were made
	tiers   map[string]enforce.Assignment
	limited map[string]bool
}

func newTree(t *testing.T, top string) *tree {
	t.Helper()
	controlledCgroup(t, top)
	tr := &tree{top: top, ids: map[string]uint64{}, tiers: map[string]enforce.Assignment{}, limited: map[string]bool{}}
	tr.add(t, top)
	t.Cleanup(func() {
		for _, cg := range slices.Backward(tr.order[1:]) {
			removeCgroup(t, cg)
		}
	})
	return tr
}

func (tr *tree) add(t *testing.T, cg string) {
	t.Helper()
	id, err := cgroup.ID(root, cg)
	if err != nil {
		t.Fatal(err)
	}
	tr.ids[cg] = id
	tr.order = append(tr.order, cg)
}

func (tr *tree) grow(t *testing.T, parent string) {
	t.Helper()
	cg := fmt.Sprintf("%s/%d", parent, len(tr.order))
	for tr.ids[cg] != 0 {
		cg += "x"
	}
	write(t, root.Cgroup(parent+"/cgroup.subtree_control"), "+cpu")
	if err := os.Mkdir(root.Cgroup(cg), 0o755); err != nil {
		t.Fatal(err)
	}
	tr.add(t, cg)
}

// shrink removes a cgroup without children, but for the top.
func (tr *tree) shrink(t *testing.T, r *rand.Rand) {
	t.Helper()
	cg := tr.leaf(r)
	if cg == tr.top {
		return
	}
	removeCgroup(t, cg)
	delete(tr.ids, cg)
	delete(tr.tiers, cg)
	delete(tr.limited, cg)
	tr.order = slices.DeleteFunc(tr.order, func(other string) bool { return other == cg })
}

func (tr *tree) any(r *rand.Rand) string { return tr.order[r.IntN(len(tr.order))] }

// deepest is one of the deepest few.
func (tr *tree) deepest(r *rand.Rand) string {
	byDepth := slices.SortedFunc(slices.Values(tr.order), func(a, b string) int { return strings.Count(b, "/") - strings.Count(a, "/") })
	return byDepth[r.IntN(min(3, len(byDepth)))]
}

func (tr *tree) leaf(r *rand.Rand) string {
	leaves := slices.DeleteFunc(slices.Clone(tr.order), func(cg string) bool {
		return slices.ContainsFunc(tr.order, func(other string) bool { return strings.HasPrefix(other, cg+"/") })
	})
	return leaves[r.IntN(len(leaves))]
}

type known struct {
	policy  enforce.Assignment // Limits is a mode, and the one in force
	limited uint64             // id of the nearest cgroup with a limit; 0: there is none
}

func (tr *tree) want(cg string) (k known) {
	k.policy = enforce.Assignment{Tier: uint16(tier.Standard), Limits: enforce.LimitsPaced}
	mapped := false
	for ; ; cg = path.Dir(cg) {
		if a, is := tr.tiers[cg]; is && !mapped {
			mapped = true
			k.policy.Tier = a.Tier
			if a.Limits != 0 {
				k.policy.Limits = a.Limits - 1
			}
		}
		if k.limited == 0 && tr.limited[cg] {
			k.limited = tr.ids[cg]
		}
		if cg == tr.top {
			return k
		}
	}
}

// knownSlots are the scheduler's own maps of cgroups.
type knownSlots struct {
	slots, cgroups                   *ebpf.Map
	id, policy, limited, defaultTier uint32 // offsets in a slot
}

func openSlots(t *testing.T) *knownSlots {
	t.Helper()
	k := &knownSlots{slots: mapNamed(t, "cgroup_slots"), cgroups: mapNamed(t, "cgroups")}
	offset := offsetsIn(t, k.cgroups, "cgroup_slot")
	k.id, k.policy, k.limited, k.defaultTier = offset("id"), offset("policy"), offset("limited"), offset("default_tier")
	return k
}

// offsetsIn says where a map's struct has its members.
func offsetsIn(t *testing.T, m *ebpf.Map, name string) func(member string) uint32 {
	t.Helper()
	info, err := m.Info()
	if err != nil {
		t.Fatal(err)
	}
	id, _ := info.BTFID()
	handle, err := btf.NewHandleFromID(id)
	if err != nil {
		t.Fatal(err)
	}
	defer handle.Close()
	spec, err := handle.Spec(nil)
	if err != nil {
		t.Fatal(err)
	}
	var members *btf.Struct
	if err := spec.TypeByName(name, &members); err != nil {
		t.Fatal(err)
	}
	return func(member string) uint32 {
		t.Helper()
		i := slices.IndexFunc(members.Members, func(m btf.Member) bool { return m.Name == member })
		if i < 0 {
			t.Fatalf("%s has no %s", name, member)
		}
		return members.Members[i].Offset.Bytes()
	}
}

// of is the slot of a cgroup.
func (k *knownSlots) of(t *testing.T, cg string) (index uint32) {
	t.Helper()
	id, err := cgroup.ID(root, cg)
	if err != nil {
		t.Fatal(err)
	}
	if err := k.slots.Lookup(id, &index); err != nil {
		t.Fatal(cg, err)
	}
	return index
}

func (k *knownSlots) known(t *testing.T, cg string) (is known) {
	t.Helper()
	slot := k.slot(t, k.of(t, cg))
	policy := binary.NativeEndian.Uint64(slot[k.policy:])
	is.policy = enforce.Assignment{Tier: uint16(policy & 15), Limits: uint16(policy >> 4 & 15)}
	if is.policy.Tier == uint16(tier.Count) {
		is.policy.Tier = uint16(binary.NativeEndian.Uint32(slot[k.defaultTier:]))
	}
	if limited := uint32(binary.NativeEndian.Uint64(slot[k.limited:]) & 0xffff); limited != 0 {
		is.limited = binary.NativeEndian.Uint64(k.slot(t, limited)[k.id:])
	}
	return is
}

func (k *knownSlots) slot(t *testing.T, index uint32) []byte {
	t.Helper()
	slot := make([]byte, k.cgroups.ValueSize())
	if err := k.cgroups.Lookup(index, slot); err != nil {
		t.Fatal(err)
	}
	return slot
}

// runIn runs a process in a cgroup, to its end.
func runIn(t *testing.T, cg string) {
	t.Helper()
	dir, err := os.Open(root.Cgroup(cg))
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	pid, err := syscall.ForkExec("/bin/true", []string{"true"}, &syscall.ProcAttr{
		Sys: &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := syscall.Wait4(pid, nil, 0, nil); err != nil {
		t.Fatal(err)
	}
}
