package main

import (
	"strings"

	"temper.dev/temper/internal/base/cgroup"
)

// cgroups is a flag's value: paths in the cgroup tree, one each time that the flag is given.
type cgroups []string

func (c *cgroups) Set(text string) error {
	if err := cgroup.ValidPath(text); err != nil {
		return err
	}
	*c = append(*c, text)
	return nil
}

func (c *cgroups) String() string { return strings.Join(*c, ", ") }

func (c *cgroups) Type() string { return "cgroup" }
