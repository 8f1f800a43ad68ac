package cgroup

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/host"
)

// Controllers is where the agent has turned the cpu controller on. A file keeps the list, so that an agent
// that starts after a crash can still turn it off.
type Controllers struct {
	root host.Root
	on   map[string]enabled // by cgroup
}

type enabled struct {
	ID   uint64 `json:"id"`   // a cgroup made anew under the same name is another
	Kind string `json:"kind"` // its cgroup.type then
}

const controllersFile = "controllers.json"

// OpenControllers takes over what an earlier agent has turned on.
func OpenControllers(root host.Root) (*Controllers, error) {
	c := &Controllers{root: root, on: map[string]enabled{}}
	data, err := os.ReadFile(root.Run(controllersFile))
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &c.on)
	}
	if err != nil {
		return nil, exit.New(exit.Failed, "remove the file; the cpu controller then stays on where it is on", "%s: %w", root.Run(controllersFile), err)
	}
	return c, nil
}

// Enable is EnableCPU, remembered.
func (c *Controllers) Enable(cg string) ([]string, error) {
	cgs, err := EnableCPU(c.root, cg)
	for _, above := range cgs {
		id, idErr := ID(c.root, above)
		if idErr != nil {
			continue // removed meanwhile
		}
		c.on[above] = enabled{ID: id, Kind: kind(c.root, above)}
	}
	if len(cgs) > 0 {
		err = errors.Join(err, c.save())
	}
	return cgs, err
}

// Recheck turns the controller off where a process has since come into a cgroup that was empty. That cgroup is a threaded
// domain now, and its children take no processes. Recheck returns the cgroups where it is off again.
func (c *Controllers) Recheck() (off []string, err error) {
	var errs []error
	for _, cg := range c.Cgroups() {
		was := c.on[cg]
		if id, err := ID(c.root, cg); err != nil || id != was.ID {
			delete(c.on, cg)
			continue
		}
		if was.Kind != domain || kind(c.root, cg) == domain || !populated(c.root, cg) {
			continue
		}
		if err := c.write(cg); err != nil {
			errs = append(errs, fmt.Errorf("%s has become a threaded domain, since a process came into it, and the cpu controller cannot be turned off there: %w", cg, err))
			continue
		}
		delete(c.on, cg)
		off = append(off, cg)
	}
	if len(off) > 0 {
		errs = append(errs, c.save())
	}
	return off, errors.Join(errs...)
}

// Disable turns the controller off again where it was turned on, the deepest first. Where a child has a weight or a limit by
// now, or enables the controller itself, somebody else needs it: there it stays, and the cgroup is in kept.
func (c *Controllers) Disable() (kept []string, err error) {
	var errs []error
	for _, cg := range c.Cgroups() {
		was := c.on[cg]
		delete(c.on, cg)
		if id, err := ID(c.root, cg); err != nil || id != was.ID {
			continue
		}
		if c.inUse(cg) {
			kept = append(kept, cg)
			continue
		}
		switch err := c.write(cg); {
		case errors.Is(err, syscall.EBUSY): // a child enables it for its own children
			kept = append(kept, cg)
		case err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENODEV):
			errs = append(errs, fmt.Errorf("cannot turn the cpu controller off in %s: %w", cg, err))
		}
	}
	return kept, errors.Join(append(errs, c.save())...)
}

// Cgroups lists where the controller was turned on, the deepest first.
func (c *Controllers) Cgroups() []string {
	return slices.SortedFunc(maps.Keys(c.on), func(x, y string) int {
		return cmp.Or(cmp.Compare(len(Ancestors(y)), len(Ancestors(x))), cmp.Compare(y, x))
	})
}

// inUse tells whether a child of cg has a setting of the controller other than the kernel's default.
func (c *Controllers) inUse(cg string) bool {
	for _, child := range Children(c.root, cg) {
		for file, standard := range map[string]string{"cpu.weight": "100", "cpu.max": "max", "cpu.idle": "0"} {
			text, err := host.Read(c.root.Cgroup(child.Path(cg) + "/" + file))
			value, _, _ := strings.Cut(text, " ")
			if err == nil && value != standard {
				return true
			}
		}
	}
	return false
}

// write turns the controller off; it must not make a file on a file system of fixtures.
func (c *Controllers) write(cg string) error {
	f, err := os.OpenFile(subtreeControl(c.root, cg), os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString("-cpu")
	return errors.Join(err, f.Close())
}

func (c *Controllers) save() error {
	if len(c.on) == 0 {
		if err := os.Remove(c.root.Run(controllersFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return host.WriteJSON(c.root.Run(controllersFile), c.on)
}
