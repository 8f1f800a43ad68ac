package chaos

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

	"temper.dev/temper/internal/base/tier"
)

// schedulerMap finds a map of the attached scheduler among the kernel's: not all of them are pinned.
func schedulerMap(matches func(name string) bool) (*ebpf.Map, *btf.Spec, error) {
	for id := ebpf.MapID(0); ; {
		next, err := ebpf.MapGetNextID(id)
		if err != nil {
			return nil, nil, fmt.Errorf("a map of the scheduler was not found: %w", err)
		}
		id = next
		m, err := ebpf.NewMapFromID(id)
		if err != nil {
			continue // gone meanwhile
		}
		if info, err := m.Info(); err == nil && matches(info.Name) {
			types, err := typesOf(info)
			return m, types, err
		}
		m.Close()
	}
}

func typesOf(info *ebpf.MapInfo) (*btf.Spec, error) {
	id, ok := info.BTFID()
	if !ok {
		return nil, fmt.Errorf("map %s has no type information", info.Name)
	}
	handle, err := btf.NewHandleFromID(id)
	if err != nil {
		return nil, err
	}
	defer handle.Close()
	return handle.Spec(nil)
}

// variables are the scheduler's own, as the kernel holds them now.
type variables struct {
	data []byte
	vars []btf.VarSecinfo
}

func readVariables() (*variables, error) {
	m, types, err := schedulerMap(func(name string) bool { return strings.HasPrefix(name, "temper") && strings.HasSuffix(name, ".bss") })
	if err != nil {
		return nil, err
	}
	defer m.Close()
	var section *btf.Datasec
	if err := types.TypeByName(".bss", &section); err != nil {
		return nil, err
	}
	data, err := m.LookupBytes(uint32(0))
	return &variables{data, section.Vars}, err
}

func (v *variables) find(name string) (btf.VarSecinfo, error) {
	for _, s := range v.vars {
		if s.Type.(*btf.Var).Name == name {
			return s, nil
		}
	}
	return btf.VarSecinfo{}, fmt.Errorf("the scheduler has no variable %s", name)
}

// numbers returns an array of 32-bit numbers.
func (v *variables) numbers(name string) ([]uint32, error) {
	s, err := v.find(name)
	return words(v.data[s.Offset : s.Offset+s.Size]), err
}

// members returns an array of 32-bit numbers that each element of an array of structs has.
func (v *variables) members(array, member string) ([][]uint32, error) {
	s, err := v.find(array)
	if err != nil {
		return nil, err
	}
	elements, ok := btf.UnderlyingType(s.Type.(*btf.Var).Type).(*btf.Array)
	if !ok {
		return nil, fmt.Errorf("the scheduler's %s is no array", array)
	}
	offset, size, err := place(elements.Type, member)
	if err != nil {
		return nil, err
	}
	each := s.Size / elements.Nelems
	var list [][]uint32
	for at := s.Offset + offset; at < s.Offset+s.Size; at += each {
		list = append(list, words(v.data[at:at+size]))
	}
	return list, nil
}

// place is where in a struct a member lies, in bytes.
func place(t btf.Type, member string) (offset, size uint32, err error) {
	s, ok := btf.UnderlyingType(t).(*btf.Struct)
	if !ok {
		return 0, 0, fmt.Errorf("%v is no struct", t)
	}
	for _, m := range s.Members {
		if m.Name == member {
			n, err := btf.Sizeof(m.Type)
			return m.Offset.Bytes(), uint32(n), err
		}
	}
	return 0, 0, fmt.Errorf("struct %s has no member %s", s.Name, member)
}

func words(data []byte) (list []uint32) {
	for ; len(data) >= 4; data = data[4:] {
		list = append(list, binary.NativeEndian.Uint32(data))
	}
	return list
}

// audit says what of the scheduler's own books does not agree with a node on which nothing of ours is
// left: a count that is off would make it interrupt, or overlook, for ever.
func audit() (wrong []string, err error) {
	v, err := readVariables()
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"queued", "dequeuing"} {
		counts, err := v.numbers(name)
		if err != nil {
			return nil, err
		}
		wrong = append(wrong, notZero(name, counts)...)
	}
	pinned, err := v.members("cpus", "pinned")
	if err != nil {
		return nil, err
	}
	for cpu, counts := range pinned {
		wrong = append(wrong, notZero(fmt.Sprintf("cpus[%d].pinned", cpu), counts)...)
	}
	err = eachEntry("cgroups", "cgroup_slot", "nr", func(index uint32, nr []uint32) {
		// Of the others somebody is there.
		for _, t := range []tier.Tier{tier.Critical, tier.Background} {
			if nr[t] != 0 {
				wrong = append(wrong, fmt.Sprintf("cgroups[%d].nr[%v] is %d", index, t, int32(nr[t])))
			}
		}
	})
	if err != nil {
		return nil, err
	}
	for _, member := range []string{"throttled", "admitted"} {
		err := eachEntry("limits", "temper_limit", member, func(index uint32, n []uint32) {
			if n[0] != 0 {
				wrong = append(wrong, fmt.Sprintf("limits[%d].%s is %d", index, member, int32(n[0])))
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return wrong, nil
}

func notZero(name string, counts []uint32) (wrong []string) {
	for t, n := range counts {
		if n != 0 {
			wrong = append(wrong, fmt.Sprintf("%s[%v] is %d", name, tier.Tier(t), int32(n)))
		}
	}
	return wrong
}

// eachEntry visits a member of each entry of one of the scheduler's maps.
func eachEntry(mapName, structName, member string, visit func(index uint32, values []uint32)) error {
	m, types, err := schedulerMap(func(name string) bool { return name == mapName })
	if err != nil {
		return err
	}
	defer m.Close()
	var entry *btf.Struct
	if err := types.TypeByName(structName, &entry); err != nil {
		return err
	}
	offset, size, err := place(entry, member)
	if err != nil {
		return err
	}
	var index uint32
	data := make([]byte, m.ValueSize())
	all := m.Iterate()
	for all.Next(&index, &data) {
		visit(index, words(data[offset:offset+size]))
	}
	return all.Err()
}
