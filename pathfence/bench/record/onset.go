package record

import "time"

// Step is how much time a point of Onset stands for.
const Step = perStep * bin

const perStep = 4

// Onset is how many milliseconds a path's requests took in each Step after the onset, on average over the repetitions that
// count: the latencies of those that were due then, over how many are due in a Step on average. Empty where no row counts.
func (r Record) Onset(arm, disturbance, path string) (line []float64) {
	due := 0.0
	for _, row := range r.of(arm, disturbance, path) {
		if !row.Valid {
			continue
		}
		due += row.Offered * Step.Seconds()
		for i, ms := range row.Onset {
			if i/perStep == len(line) {
				line = append(line, 0)
			}
			line[i/perStep] += ms
		}
	}
	for i := range line {
		line[i] /= max(due, 1)
	}
	return line
}

// OnsetAt is the middle of a point of Onset.
func OnsetAt(point int) time.Duration { return time.Duration(point)*Step + Step/2 }
