// Command tierof says which tier the attached scheduler has for the cgroup that it runs in: the tests' first instruction in
// a container.
package main

import (
	"fmt"
	"os"
	"path"
	"strings"

	"temper.dev/temper/internal/base/cgroup"
	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/node/enforce"
)

func main() {
	name, err := tierOf("/")
	if err != nil {
		fmt.Fprintln(os.Stderr, "tierof:", err)
		os.Exit(1)
	}
	fmt.Println(name)
}

// tierOf is the tier of the nearest cgroup that has one by an entry of its own; "none" if there is no such cgroup.
func tierOf(root host.Root) (string, error) {
	text, err := host.Read(root.Path("/proc/self/cgroup"))
	if err != nil {
		return "", err
	}
	tiers, err := enforce.OpenTierMap(root.Pins())
	if err != nil {
		return "", err
	}
	defer tiers.Close()
	entries, err := tiers.Entries()
	if err != nil {
		return "", err
	}
	for cg := strings.TrimPrefix(text, "0::"); ; cg = path.Dir(cg) {
		id, err := cgroup.ID(root, cg)
		if err != nil {
			return "", err
		}
		if entry, ok := entries[id]; ok {
			return tier.Tier(entry.Tier).String(), nil
		}
		if cg == "/" {
			return "none", nil
		}
	}
}
