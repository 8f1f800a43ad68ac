package trial

import (
	"slices"

	"temper.dev/temper/pathfence/bench/record"
)

// due says whether a run is to be done, by what a record has of it: if nothing that it has counts, and it was not yet tried
// more often than so many retries.
func (r Run) due(has []record.Row, retries int) bool {
	attempts := r.attempts(has)
	counts := func(rows []record.Row) bool { return !slices.ContainsFunc(rows, invalid) }
	return len(attempts) <= retries && !slices.ContainsFunc(attempts, counts)
}

// attempts are the rows of each time that a run was done. A record has all of a run's rows, or none.
func (r Run) attempts(has []record.Row) [][]record.Row {
	arms := []Arm{r.Arm}
	if r.Turns != nil {
		arms = r.Turns
	}
	own := slices.DeleteFunc(slices.Clone(has), func(row record.Row) bool {
		return row.Repetition != r.Repetition ||
			!slices.ContainsFunc(arms, func(a Arm) bool { return a.Name == row.Arm }) ||
			!slices.ContainsFunc(r.parts(), func(p part) bool { return p.disturbance == row.Disturbance })
	})
	return slices.Collect(slices.Chunk(own, len(arms)*len(r.parts())*len(r.groups())))
}

func invalid(row record.Row) bool { return !row.Valid }
