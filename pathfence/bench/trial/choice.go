package trial

import (
	"fmt"
	"slices"
	"strings"

	"temper.dev/temper/pathfence/bench/record"
)

// What the table has, and what a look has.
var (
	TableArms         = []string{record.Shared, "shared with expiry", "shared with shedding", "unbounded", "static bulkhead", "static with shedding", record.Fence}
	TableDisturbances = []string{record.None, record.Slow, record.Freeze, record.Surge, "one downstream", record.Saturation}
	QuickArms         = []string{record.Shared, "static with shedding", record.Fence}
	QuickDisturbances = []string{record.Slow, record.Freeze, record.Surge}
)

// ArmsNamed finds arms; "all" is all of them.
func ArmsNamed(names []string) ([]Arm, error) {
	return choose(Arms, func(a Arm) string { return a.Name }, names)
}

// DisturbancesNamed finds disturbances; "all" is all of them.
func DisturbancesNamed(names []string) ([]Disturbance, error) {
	return choose(Disturbances(), func(d Disturbance) string { return d.Name }, names)
}

func choose[T any](from []T, nameOf func(T) string, names []string) (chosen []T, err error) {
	if slices.Equal(names, []string{"all"}) {
		return from, nil
	}
	for _, name := range names {
		i := slices.IndexFunc(from, func(v T) bool { return nameOf(v) == name })
		if i < 0 {
			var known []string
			for _, v := range from {
				known = append(known, nameOf(v))
			}
			return nil, fmt.Errorf("there is no %q, but %s", name, strings.Join(known, "; "))
		}
		chosen = append(chosen, from[i])
	}
	return chosen, nil
}
