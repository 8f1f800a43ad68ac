package enforce

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"sort"
	"syscall"

	"temper.dev/temper/internal/base/cgroup"
	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/host"
)

// Idle is the second rung: background cgroups have cpu.idle=1, no other file is touched.
// The kernel forgets cpu.weight while cpu.idle is 1, so Idle remembers it, in a file,
// so that an agent that starts after a crash can still give it back. While cpu.idle is 1 the kernel
// refuses every write of cpu.weight: whoever wants to write one sets cpu.idle to 0 first. That is
// somebody else's decision, and Idle leaves such a cgroup alone (docs/decisions/0043).
type Idle struct {
	root  host.Root
	saved map[string]saved  // by cgroup
	seen  map[string]uint64 // ids of cgroups that were looked at since the last Recheck
	dirty bool              // the file is behind
}

// Cgroup is one that is there.
type Cgroup struct {
	Path string
	ID   uint64
}

type saved struct {
	ID     uint64 `json:"id"` // a cgroup made anew under the same name is another
	Weight string `json:"cpu.weight"`
	Set    bool   `json:"set"`    // cpu.idle was written
	Others bool   `json:"others"` // since then somebody else has written 0
}

const idleFile = "idle.json"

// OpenIdle takes over what an earlier agent has set.
func OpenIdle(root host.Root) (*Idle, error) {
	i := &Idle{root: root, saved: map[string]saved{}, seen: map[string]uint64{}}
	data, err := os.ReadFile(root.Run(idleFile))
	if errors.Is(err, fs.ErrNotExist) {
		return i, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &i.saved); err != nil {
		return nil, exit.New(exit.Failed, "set cpu.idle and cpu.weight of background cgroups by hand and remove the file",
			"%s: %w", root.Run(idleFile), err)
	}
	return i, nil
}

// Set makes exactly cgs idle: those that are not among them any more get their weight back.
// Those that it has looked at are left out until Recheck: it is called at each change of any cgroup.
// It goes on after a failure and returns all of them.
func (i *Idle) Set(cgs []Cgroup) error {
	var errs []error
	want := make(map[string]bool, len(cgs))
	for _, cg := range cgs {
		want[cg.Path] = true
		if i.seen[cg.Path] == cg.ID {
			continue
		}
		if err := i.set(cg.Path); err == nil {
			i.seen[cg.Path] = cg.ID
		} else if !isGone(err) {
			errs = append(errs, fmt.Errorf("cpu.idle of %s: %w", cg.Path, err))
		}
	}
	maps.DeleteFunc(i.seen, func(cg string, _ uint64) bool { return !want[cg] })
	if i.dirty {
		errs = append(errs, i.save())
	}
	for _, cg := range i.Cgroups() {
		if want[cg] {
			continue
		}
		if err := i.restore(cg); err != nil {
			errs = append(errs, fmt.Errorf("cannot give %s its cpu.weight back: %w", cg, err))
		}
	}
	return errors.Join(errs...)
}

// Recheck has the next Set look at all cgroups: somebody else may have changed them.
func (i *Idle) Recheck() { clear(i.seen) }

// Restore gives every cgroup its weight back.
func (i *Idle) Restore() error { return i.Set(nil) }

// Clear ends cpu.idle of commands that temper run has started without a scheduler. Whoever set it
// remembered no weight, so they have the kernel's default.
func (i *Idle) Clear(cgs []string) error {
	var errs []error
	for _, cg := range cgs {
		if now, err := host.Read(i.file(cg, "cpu.idle")); err == nil && now == "1" {
			errs = append(errs, write(i.file(cg, "cpu.idle"), "0"))
		}
	}
	return errors.Join(errs...)
}

// Cgroups lists the cgroups that this rung has changed.
func (i *Idle) Cgroups() []string {
	list := make([]string, 0, len(i.saved))
	for cg := range i.saved {
		list = append(list, cg)
	}
	sort.Strings(list)
	return list
}

// Problems says of each cgroup that somebody else has taken over that it is not idle.
func (i *Idle) Problems() (list []string) {
	for _, cg := range i.Cgroups() {
		if i.saved[cg].Others {
			list = append(list, "cpu.idle of "+cg+" was set to 0 by somebody else, and stays 0 while the node is on this rung; write 1 to it, or take "+cg+" out of background")
		}
	}
	return list
}

// Supported tells whether the kernel has cpu.idle (5.15 and later) for any of these cgroups. Those that have gone
// meanwhile say nothing of it; where all have, it may have.
func (i *Idle) Supported(cgs []Cgroup) bool {
	there := false
	for _, cg := range cgs {
		if host.Exists(i.file(cg.Path, "cpu.idle")) {
			return true
		}
		there = there || host.Exists(i.root.Cgroup(cg.Path))
	}
	return !there
}

func (i *Idle) set(cg string) error {
	id, err := cgroup.ID(i.root, cg)
	if err != nil {
		return err
	}
	old, known := i.saved[cg]
	now, err := host.Read(i.file(cg, "cpu.idle"))
	if err != nil {
		return err
	}
	known = known && old.ID == id
	if now == "1" { // ours, or somebody else's, who then decides when it ends
		if known {
			i.remember(cg, saved{ID: id, Weight: old.Weight, Set: true})
		}
		return nil
	}
	weight, err := host.Read(i.file(cg, "cpu.weight"))
	if err != nil {
		return err
	}
	if known && old.Set {
		i.remember(cg, saved{ID: id, Weight: weight, Set: true, Others: true})
		return nil
	}
	i.saved[cg] = saved{ID: id, Weight: weight}
	if err := i.save(); err != nil { // before the change, so that no crash can lose the weight
		return err
	}
	if err := write(i.file(cg, "cpu.idle"), "1"); err != nil {
		return err
	}
	i.remember(cg, saved{ID: id, Weight: weight, Set: true})
	return nil
}

func (i *Idle) remember(cg string, now saved) {
	if i.saved[cg] != now {
		i.saved[cg], i.dirty = now, true
	}
}

func (i *Idle) restore(cg string) error {
	old := i.saved[cg]
	now, err := host.Read(i.file(cg, "cpu.idle"))
	if err != nil && !isGone(err) {
		return err
	}
	// Where it is not 1 any more, cpu.weight is somebody else's, or was never lost.
	if id, err := cgroup.ID(i.root, cg); err == nil && id == old.ID && now == "1" && !old.Others {
		for _, file := range []struct{ name, value string }{{"cpu.idle", "0"}, {"cpu.weight", old.Weight}} {
			if err := write(i.file(cg, file.name), file.value); isGone(err) {
				break // removed meanwhile
			} else if err != nil {
				return err
			}
		}
	}
	delete(i.saved, cg)
	return i.save()
}

// isGone tells whether a cgroup was removed while one of its files was used.
func isGone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV) }

func (i *Idle) file(cg, name string) string { return i.root.Cgroup(path.Join(cg, name)) }

func (i *Idle) save() error {
	err := host.WriteJSON(i.root.Run(idleFile), i.saved)
	i.dirty = err != nil
	return err
}

// write changes a control file that exists; it must not make one on a file system of fixtures.
func write(file, value string) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}
