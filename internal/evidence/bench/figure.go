package bench

import "math"

// Figure names a number of a window, by its JSON name.
type Figure string

// Figures that are pooled and compared.
const (
	P50             Figure = "p50_ms"
	P90             Figure = "p90_ms"
	P99             Figure = "p99_ms"
	P999            Figure = "p999_ms"
	Mean            Figure = "mean_ms"
	Work            Figure = "background_work"
	BackgroundCores Figure = "background_cores"
	IdleCores       Figure = "idle_cores"
	Requests        Figure = "requests" // answered in a window
)

// Short is the figure's name in a table.
func (f Figure) Short() string {
	switch f {
	case P50:
		return "p50"
	case P90:
		return "p90"
	case P99:
		return "p99"
	case P999:
		return "p99.9"
	case Mean:
		return "mean"
	case Work:
		return "background work"
	case BackgroundCores:
		return "background cores"
	case IdleCores:
		return "idle cores"
	case Requests:
		return "service throughput"
	}
	return string(f)
}

// Figures are the numbers of one window, or of several pooled. Latencies are in ms.
type Figures struct {
	P50             float64 `json:"p50_ms"`
	P90             float64 `json:"p90_ms"`
	P99             float64 `json:"p99_ms"`
	P999            float64 `json:"p999_ms"`
	Mean            float64 `json:"mean_ms"`
	Work            float64 `json:"background_work"` // iterations a window
	BackgroundCores float64 `json:"background_cores"`
	IdleCores       float64 `json:"idle_cores"`
	Requests        float64 `json:"requests"` // answered, a window
}

// At is one figure, NaN for a figure that does not exist.
func (f Figures) At(name Figure) float64 {
	switch name {
	case P50:
		return f.P50
	case P90:
		return f.P90
	case P99:
		return f.P99
	case P999:
		return f.P999
	case Mean:
		return f.Mean
	case Work:
		return f.Work
	case BackgroundCores:
		return f.BackgroundCores
	case IdleCores:
		return f.IdleCores
	case Requests:
		return f.Requests
	}
	return math.NaN()
}

// FiguresOf are a window's figures as its record gives them.
func FiguresOf(s Step) Figures {
	return Figures{
		P50: s.P50, P90: s.P90, P99: s.P99, P999: s.P999, Mean: s.Mean,
		Work: float64(s.BackgroundWork), BackgroundCores: s.BackgroundCores, IdleCores: s.IdleCores,
		Requests: float64(s.Requests),
	}
}

// noFigures stands for a step without a valid window in a bootstrap's draw: every ratio with it is NaN.
func noFigures() Figures {
	n := math.NaN()
	return Figures{n, n, n, n, n, n, n, n, n}
}
