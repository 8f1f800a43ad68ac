package inlab

import (
	"context"
	"fmt"
	"time"

	"temper.dev/temper/pathfence/bench/record"
	"temper.dev/temper/pathfence/bench/trial"
)

// Do adds to a record the repetitions of a study that it lacks, each from a guest of its own, and gives it to keep after
// each. The guests are told what to do by arguments, the repetition behind them.
func (g Guest) Do(ctx context.Context, study trial.Study, arguments []string, r *record.Record, keep func() error) error {
	done := repetitions(*r)
	p := &progress{study: study, log: g, began: time.Now(), left: len(study.Runs(0)) * (study.Repetitions - len(done))}
	for repetition := range study.Repetitions {
		if done[repetition+1] {
			continue
		}
		runs := study.Runs(repetition)
		var rows []record.Row
		ended := 0
		p.next(repetition, runs, ended)
		err := g.run(ctx, time.Duration(len(runs))*study.Takes()*hostFactor, append(arguments, fmt.Sprint(repetition)), func(e event) {
			if e.Kernel != "" { // a guest that starts again begins with it, too
				r.Machine.Kernel = e.Kernel
				p.left += ended
				rows, ended = nil, 0
				return
			}
			rows = append(rows, e.Rows...)
			ended++
			p.left--
			p.ended++
			p.next(repetition, runs, ended)
		})
		if err == nil && ended != len(runs) {
			err = fmt.Errorf("the guest is done after %d runs of %d", ended, len(runs))
		}
		if err != nil {
			return err
		}
		r.Rows = append(r.Rows, rows...)
		if err := keep(); err != nil {
			return err
		}
	}
	return nil
}

// repetitions are those that a record has.
func repetitions(r record.Record) map[int]bool {
	has := map[int]bool{}
	for _, row := range r.Rows {
		has[row.Repetition] = true
	}
	return has
}

// progress says how far a study is.
type progress struct {
	study       trial.Study
	log         Guest
	began       time.Time
	ended, left int // runs
}

// next says which run is under way, and how long all takes that is left.
func (p *progress) next(repetition int, runs []string, ended int) {
	if ended == len(runs) {
		return
	}
	each := p.study.Takes() * hostFactor
	if p.ended > 0 {
		each = time.Since(p.began) / time.Duration(p.ended)
	}
	fmt.Fprintf(p.log.Log, "repetition %d of %d · run %d of %d · %s · about %v left\n", repetition+1, p.study.Repetitions, ended+1, len(runs), runs[ended],
		(time.Duration(p.left) * each).Round(time.Second))
}
