package trial

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"temper.dev/temper/pathfence/bench/load"
	"temper.dev/temper/pathfence/bench/record"
	"temper.dev/temper/pathfence/bench/stage"
)

// turn is how long an arm is asked at saturation before it is the next one's turn. The same service is a tenth faster or
// slower from one minute to the next, and more, on a machine that others have a part of; not from one turn to the next.
const turn = 500 * time.Millisecond

// inTurns says how the runs of arms that take turns are named.
func inTurns(arms []Arm) Arm {
	var names []string
	for _, a := range arms {
		names = append(names, a.Name)
	}
	return Arm{Name: strings.Join(names, " and ") + ", in turns"}
}

// takeTurns starts the processes of all arms, and keeps each saturated for a turn, again and again, until each has been for
// as long as warm-up and disturbance take. Who has no turn does nothing.
func (r Run) takeTurns(ctx context.Context) (rows []record.Row, err error) {
	own := []int{os.Getpid()}
	runs, sets := make([]Run, len(r.Turns)), make([]*set, len(r.Turns))
	for i, arm := range r.Turns {
		runs[i] = r
		runs[i].Arm = arm
		sets[i], err = runs[i].start()
		defer func() { err = errors.Join(err, sets[i].stop()) }()
		if err != nil {
			return nil, err
		}
		defer sets[i].client.Close()
		for _, p := range sets[i].processes {
			own = append(own, p.PID())
		}
	}
	results, marks := make([][]load.Result, len(r.Turns)), map[time.Duration]stage.CPU{}
	for at := time.Duration(0); at < r.Timeline.over(); at += turn {
		if _, warm := marks[r.Timeline.WarmUp]; !warm && at >= r.Timeline.WarmUp {
			if marks[r.Timeline.WarmUp], err = stage.ReadCPU("/proc", own); err != nil {
				return nil, err
			}
		}
		for i, run := range runs {
			now := time.Now()
			flows := r.Disturbance.flows(r.Scale, r.Timeline, run.groups()...)
			got, err := run.saturate(ctx, now.Add(-at), now.Add(turn), sets[i].client, r.Scale.Workers/2, flows...)
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", run.Arm.Name, r.Disturbance.Name, err)
			}
			results[i] = append(results[i], got...)
		}
	}
	if marks[r.Timeline.over()], err = stage.ReadCPU("/proc", own); err != nil {
		return nil, err
	}
	for i, run := range runs {
		rows = append(rows, run.rows(results[i], marks)...)
	}
	return rows, nil
}
