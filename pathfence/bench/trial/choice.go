package trial

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"temper.dev/temper/pathfence/bench/record"
	"temper.dev/temper/pathfence/go/core/sim"
)

// What the table has, and what a look has; and of both, what the lab has time for.
var (
	TableDisturbances    = []string{record.None, record.Slow, record.Freeze, record.Surge, "one downstream", record.Saturation}
	QuickDisturbances    = []string{record.Slow, record.Freeze, record.Surge}
	LabDisturbances      = []string{record.Slow, record.Freeze, record.Surge}
	QuickLabDisturbances = []string{record.Slow}
	LabArms              = []string{record.Shared, "shared with expiry", "shared with shedding", "static bulkhead", record.Fence}
)

// Named finds arms; "all" is all of them.
func (l Language) Named(names []string) ([]Arm, error) {
	return choose(l.All(), func(a Arm) string { return a.Name }, names)
}

// DisturbancesNamed finds disturbances; "all" is all of them, "traces" the traces, "networks" those of the social network's
// cut, "social" those of the whole, "shops" those of the shop, "media" those of the media service, "neighbours" the neighbours.
func DisturbancesNamed(names []string) ([]Disturbance, error) {
	var each []string
	for _, name := range names {
		switch name {
		case "traces":
			each = append(each, sim.TraceNames()...)
		case "networks":
			each = append(each, record.Network, record.NetworkSlow, record.NetworkFreeze)
		case "social":
			each = append(each, record.Social, record.SocialSlow, record.SocialFreeze)
		case "shops":
			each = append(each, record.Shop, record.ShopSlow, record.ShopFreeze)
		case record.Media:
			each = append(each, record.Media, record.MediaSlow, record.MediaFreeze)
		case "neighbours":
			for _, d := range besides {
				each = append(each, d.Name)
			}
		default:
			each = append(each, name)
		}
	}
	return choose(Disturbances(), func(d Disturbance) string { return d.Name }, each)
}

// Choose finds disturbances as DisturbancesNamed does, but none that the study cannot have: "all" are all others, and one
// that was asked for by name is an error.
func (s Study) Choose(names []string) ([]Disturbance, error) {
	chosen, err := DisturbancesNamed(names)
	if err != nil {
		return nil, err
	}
	var possible []Disturbance
	for _, d := range chosen {
		why := s.refuses(d)
		if why == nil {
			possible = append(possible, d)
		} else if !slices.Equal(names, []string{"all"}) {
			return nil, fmt.Errorf("%s: %w", d.Name, why)
		}
	}
	return possible, nil
}

// refuses says why a study cannot have a disturbance, or nil.
func (s Study) refuses(d Disturbance) error {
	switch {
	case s.Language != "cpp" && record.Calm(d.Name) == record.Social:
		return errors.New("its services are in C++: 17 Java virtual machines would be what is measured; leave out --java")
	case s.Language != "java" && record.Calm(d.Name) == record.Shop:
		return errors.New("the shop's services are in Java; they are measured with --java")
	case s.Language != "java" && record.Calm(d.Name) == record.Media:
		return errors.New("three of the media service's services are in Java; it is measured with --java")
	case s.Timeline == Lab && slices.Contains(d.neighbours, streaming):
		return errors.New("in the lab memory takes no time; CPU neighbours do there what this would")
	}
	return nil
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
