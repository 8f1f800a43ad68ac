package trial

import (
	"slices"
	"testing"

	"temper.dev/temper/pathfence/bench/record"
)

// rowsOf are what a run leaves in a record: with one that does not count, or with none.
func rowsOf(r Run, counts bool) (rows []record.Row) {
	arms := []Arm{r.Arm}
	if r.Turns != nil {
		arms = r.Turns
	}
	for _, r.Arm = range arms {
		rows = append(rows, r.rows(nil, nil)...)
	}
	for i := range rows {
		rows[i].Valid = counts || i+1 < len(rows)
	}
	return rows
}

// Each run of a repetition is due until the record has it: one that counts, or as many that do not as there may be.
func TestDue(t *testing.T) {
	s := study(t)
	var has []record.Row
	for i, r := range s.repetition(0) {
		name := names([]Run{r})
		if !r.due(has, 0) {
			t.Errorf("%q is not due, and the record has only those before it", name)
		}
		has = append(has, rowsOf(r, i%2 == 0)...)
		if r.due(has, 0) {
			t.Errorf("%q is due again without retries", name)
		}
		if r.due(has, 1) != (i%2 == 1) {
			t.Errorf("%q is due again, if it counts; or is not, if it does not", name)
		}
	}
	for i, r := range s.repetition(0) {
		has = append(has, rowsOf(r, true)...)
		if r.due(has, 2) {
			t.Errorf("%q is due, and the second time counts", names([]Run{r}))
		}
		if i%2 == 1 && len(r.attempts(has)) != 2 {
			t.Errorf("%q was done twice, not %d times", names([]Run{r}), len(r.attempts(has)))
		}
	}
	if n, want := s.open(has), len(s.repetition(1)); n != want {
		t.Errorf("%d runs are open, not the %d of the second repetition", n, want)
	}
	has = slices.DeleteFunc(has, func(row record.Row) bool { return row.Disturbance == record.Saturation })
	if n, want := s.open(has), len(s.repetition(1))+1; n != want {
		t.Errorf("%d runs are open, not %d: arms that take turns are one run", n, want)
	}
}
