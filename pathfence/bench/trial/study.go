package trial

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"temper.dev/temper/pathfence/bench/record"
)

// Study is several runs, interleaved.
type Study struct {
	Programs
	Language     string
	Scale        Scale
	Timeline     Timeline
	Arms         []Arm
	Disturbances []Disturbance
	Repetitions  int
	Retries      int // a run with an invalid row is done again so often, at the end of its repetition
	Seed         uint64
}

// Do does the runs that a record's rows lack, a repetition after the other, each in an order of its own that follows from
// the seed. It says on log how far it is, and gives each run's rows to done as soon as there are any.
func (s Study) Do(ctx context.Context, log io.Writer, has []record.Row, done func([]record.Row) error) error {
	has = slices.Clip(has)
	count, total := 0, s.open(has)
	for repetition := range s.Repetitions {
		for retry := range s.Retries + 1 {
			for _, r := range s.repetition(repetition) {
				if !r.due(has, retry) {
					continue
				}
				count++
				fmt.Fprintf(log, "run %d of %d · repetition %d · %s · %s · about %v left\n", count, total, repetition+1, r.Disturbance.Name, r.Arm.Name, s.left(total-count+1))
				rows, err := r.Do(ctx)
				if err != nil {
					return err
				}
				if err := done(rows); err != nil {
					return err
				}
				has = append(has, rows...)
				if i := slices.IndexFunc(rows, invalid); i >= 0 {
					fmt.Fprintf(log, "  does not count: %s\n", rows[i].InvalidReason)
					if retry < s.Retries {
						total++
					}
				}
			}
		}
	}
	return nil
}

// open is how many runs some rows lack.
func (s Study) open(has []record.Row) (n int) {
	for repetition := range s.Repetitions {
		for _, r := range s.repetition(repetition) {
			if r.due(has, s.Retries) {
				n++
			}
		}
	}
	return n
}

// Repeat does the runs of one repetition, each once, and gives each run's rows to done.
func (s Study) Repeat(ctx context.Context, repetition int, done func([]record.Row) error) error {
	for _, r := range s.repetition(repetition) {
		rows, err := r.Do(ctx)
		if err == nil {
			err = done(rows)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Runs says what is done in one repetition, in its order.
func (s Study) Runs(repetition int) (names []string) {
	for _, r := range s.repetition(repetition) {
		names = append(names, r.Disturbance.Name+" · "+r.Arm.Name)
	}
	return names
}

// Takes is how long a run takes; processes start and end in about half a second.
func (s Study) Takes() time.Duration { return s.Timeline.end() + lead + 500*time.Millisecond }

// left is how long so many runs take.
func (s Study) left(runs int) time.Duration {
	return (time.Duration(runs) * s.Takes()).Round(time.Second)
}

// compiling is how much longer what a virtual machine compiles is warmed up where nothing but its CPU time counts.
const compiling = 15 * time.Second

// timeline is how long a run under a disturbance takes.
func (s Study) timeline(d Disturbance) Timeline {
	t := s.Timeline
	t.WarmUp += d.topology.Settling
	if d.full && s.Full != nil {
		t.WarmUp += compiling
	}
	return t
}

// repetition is the runs of one repetition, in the order in which they are done.
func (s Study) repetition(n int) (runs []Run) {
	add := func(arm Arm, d Disturbance) {
		runs = append(runs, Run{s.Programs, d.topology.scaled(s.Scale), s.timeline(d), arm, nil, d, n + 1, s.Seed + uint64(n)})
	}
	for _, d := range s.Disturbances {
		if d.full {
			arms := slices.DeleteFunc(slices.Clone(s.Arms), func(a Arm) bool { return !d.measures(a) })
			if len(arms) > 0 {
				add(inTurns(arms), d)
				runs[len(runs)-1].Turns = arms
			}
			continue
		}
		for _, arm := range s.Arms {
			if d.measures(arm) {
				add(arm, d)
			}
		}
		if slices.Contains(record.Isolation, d.Name) {
			d.topology = d.topology.capacity()
			add(capacity, d)
		}
	}
	for _, calm := range []Disturbance{undisturbed, undisturbedNetwork, undisturbedSocial, undisturbedShop, undisturbedMedia} {
		if slices.ContainsFunc(s.Disturbances, func(d Disturbance) bool { return record.Calm(d.Name) == calm.Name }) {
			add(alone, calm)
		}
	}
	rand.New(rand.NewPCG(s.Seed, uint64(n))).Shuffle(len(runs), func(i, j int) { runs[i], runs[j] = runs[j], runs[i] })
	return runs
}

// Plan is what a record says of a study.
func (s Study) Plan() any {
	names := func(n int, name func(int) string) (list []string) {
		for i := range n {
			list = append(list, name(i))
		}
		return list
	}
	has := func(services string) bool {
		return slices.ContainsFunc(s.Disturbances, func(d Disturbance) bool { return record.Calm(d.Name) == services })
	}
	scaleOf := func(services string, t Topology) *Scale {
		if !has(services) {
			return nil
		}
		scale := t.scaled(s.Scale)
		return &scale
	}
	longer := map[string]Timeline{}
	for _, d := range s.Disturbances {
		if t := s.timeline(d); t != s.Timeline {
			longer[d.Name] = t
		}
	}
	return struct {
		Language     string              `json:"language"`
		Scale        Scale               `json:"scale"`
		Social       *Scale              `json:"social_network_scale,omitempty"`
		Media        *Scale              `json:"media_scale,omitempty"`
		Timeline     Timeline            `json:"timeline"`
		Longer       map[string]Timeline `json:"longer_timelines,omitempty"` // by disturbance
		Arms         []string            `json:"arms"`
		Disturbances []string            `json:"disturbances"`
		Repetitions  int                 `json:"repetitions"`
	}{s.Language, s.Scale, scaleOf(record.Social, social), scaleOf(record.Media, media), s.Timeline, longer, names(len(s.Arms), func(i int) string { return s.Arms[i].Name }),
		names(len(s.Disturbances), func(i int) string { return s.Disturbances[i].Name }), s.Repetitions}
}
