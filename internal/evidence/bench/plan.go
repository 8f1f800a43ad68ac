package bench

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Conditions are what the seeds of one plan share.
type Conditions struct {
	Scenario string  `json:"scenario"`
	Load     float64 `json:"load,omitempty"` // fraction of saturation
	Bursty   bool    `json:"bursty,omitempty"`
	Kernel   string  `json:"kernel"`
	CPUs     int     `json:"cpus"`
	Seconds  float64 `json:"seconds"` // length of a window
	WarmUp   float64 `json:"warm_up_seconds,omitempty"`
	Spinner  Spinner `json:"spinner,omitzero"`
	Machine  Machine `json:"machine"` // without PreemptionMS, which is measured
	Hashes   Hashes  `json:"hashes"`
}

func conditionsOf(r Record) Conditions {
	r.Machine.PreemptionMS = 0
	return Conditions{r.Scenario, r.Load, r.Bursty, r.Kernel, r.CPUs, r.Seconds, r.WarmUp, r.Spinner, r.Machine, r.Hashes}
}

// checkRecord refuses what is not a record of this layout, or holds nothing.
func checkRecord(r Record) error {
	if r.Schema != Schema {
		return fmt.Errorf("seed %d: schema is %q, want %q", r.Seed, r.Schema, Schema)
	}
	if len(r.Arms) == 0 {
		return fmt.Errorf("seed %d: the record has no arms", r.Seed)
	}
	for _, a := range r.Arms {
		if len(a.Steps) == 0 {
			return fmt.Errorf("seed %d: arm %s has no steps", r.Seed, a.Arm)
		}
	}
	return nil
}

// Group sorts records by plan (scenario, load, bursty or not, CPUs), in the order in which each plan comes first.
// Within a group, Pool decides whether the rest agrees.
func Group(records []Record) [][]Record {
	type plan struct {
		scenario string
		load     float64
		bursty   bool
		cpus     int
	}
	var order []plan
	groups := map[plan][]Record{}
	for _, r := range records {
		key := plan{r.Scenario, r.Load, r.Bursty, r.CPUs}
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], r)
	}
	var out [][]Record
	for _, key := range order {
		out = append(out, groups[key])
	}
	return out
}

// PoolAll groups records by plan and pools each group.
func PoolAll(records []Record) ([]*Pooled, error) {
	var pools []*Pooled
	for _, group := range Group(records) {
		p, err := Pool(group)
		if err != nil {
			return nil, err
		}
		pools = append(pools, p)
	}
	return pools, nil
}

// samePlan is an error unless a and b differ in nothing but the seed and what was measured.
func samePlan(a, b Record) error {
	refuse := func(field string, x, y any) error {
		return fmt.Errorf("seeds %d and %d cannot be pooled: %s is %v in one and %v in the other", a.Seed, b.Seed, field, show(x), show(y))
	}
	if a.Seed == b.Seed {
		return fmt.Errorf("two records have seed %d: a run counted twice is no evidence", a.Seed)
	}
	if name, x, y := differingField("", conditionsOf(a), conditionsOf(b)); name != "" {
		return refuse(name, x, y)
	}
	if a.Load == 0 && a.RateRPS != b.RateRPS { // a rate that follows from measured saturation differs by nature
		return refuse("rate_rps", a.RateRPS, b.RateRPS)
	}
	if x, y := shape(a), shape(b); x != y {
		return refuse("arms", x, y)
	}
	return nil
}

func show(v any) any {
	if s, ok := v.(string); ok {
		return fmt.Sprintf("%q", s)
	}
	return v
}

// differingField is the JSON path of the first field in which two structs of one type differ, and its values. It works
// by reflection so that a field added later is compared from its first day.
func differingField(prefix string, a, b any) (path string, x, y any) {
	va, vb := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range va.NumField() {
		name, _, _ := strings.Cut(va.Type().Field(i).Tag.Get("json"), ",")
		x, y := va.Field(i).Interface(), vb.Field(i).Interface()
		if va.Field(i).Kind() == reflect.Struct {
			if path, x, y := differingField(prefix+name+".", x, y); path != "" {
				return path, x, y
			}
		} else if x != y {
			return prefix + name, x, y
		}
	}
	return "", nil, nil
}

// shape says which arms a record has, in which mode and with which steps, whatever order they ran in.
func shape(r Record) string {
	var arms []string
	for i, label := range armLabels(r.Arms) {
		var steps []string
		for _, s := range r.Arms[i].Steps {
			steps = append(steps, fmt.Sprint(s.Background))
		}
		arms = append(arms, fmt.Sprintf("%s(%s) %s", label, r.Arms[i].Preempt, strings.Join(steps, ",")))
	}
	slices.Sort(arms)
	return strings.Join(arms, "; ")
}
