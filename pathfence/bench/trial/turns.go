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

// player is an arm that takes turns with others.
type player struct {
	Run
	*set
	flows   []load.Flow
	results []load.Result
}

// takeTurns starts the processes of all arms, and keeps each saturated for a turn, again and again, until each has been for
// as long as warm-up and disturbance take. Who has no turn does nothing.
func (r Run) takeTurns(ctx context.Context) (rows []record.Row, err error) {
	var players []*player
	own := []int{os.Getpid()}
	for _, arm := range r.Turns {
		p := &player{Run: r}
		p.Arm = arm
		p.flows = r.Disturbance.flows(r.Scale, r.Timeline, p.groups()...)
		p.set, err = p.start()
		defer func() { err = errors.Join(err, p.stop()) }()
		if err != nil {
			return nil, err
		}
		defer p.client.Close()
		players = append(players, p)
		for _, process := range p.processes {
			own = append(own, process.PID())
		}
	}
	marks, err := r.rounds(ctx, players, own)
	if err != nil {
		return nil, err
	}
	for _, p := range players {
		rows = append(rows, p.rows(p.results, marks)...)
	}
	return rows, nil
}

// rounds gives each a turn, again and again, and looks at who uses the CPUs once all are warm and at the end.
func (r Run) rounds(ctx context.Context, players []*player, own []int) (marks map[time.Duration]stage.CPU, err error) {
	marks = map[time.Duration]stage.CPU{}
	for at := time.Duration(0); at < r.Timeline.over(); at += turn {
		if _, warm := marks[r.Timeline.WarmUp]; !warm && at >= r.Timeline.WarmUp {
			if marks[r.Timeline.WarmUp], err = stage.ReadCPU("/proc", own); err != nil {
				return nil, err
			}
		}
		for _, p := range players {
			if err := p.play(ctx, at); err != nil {
				return nil, fmt.Errorf("%s, %s: %w", p.Arm.Name, r.Disturbance.Name, err)
			}
		}
	}
	marks[r.Timeline.over()], err = stage.ReadCPU("/proc", own)
	return marks, err
}

// play is one turn. The arm's own time stands still between two.
func (p *player) play(ctx context.Context, at time.Duration) error {
	now := time.Now()
	got, err := p.saturate(ctx, now.Add(-at), now.Add(turn), p.client, p.Scale.Workers/2, p.flows...)
	p.results = append(p.results, got...)
	return err
}
