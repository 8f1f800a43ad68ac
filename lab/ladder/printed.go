package ladder

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"temper.dev/temper/lab/plan"
)

// printed is what a client that is a command says of one run.
type printed struct {
	Wanted    int    `json:"wanted"`    // requests that were due
	Sent      int    `json:"sent"`      // of them
	Answered  int    `json:"answered"`  // of those sent, in the histogram
	Errors    int    `json:"errors"`    // of those sent, answered otherwise than wanted
	Late      int    `json:"late"`      // of those sent, later than they were due
	Unit      string `json:"unit"`      // of the histogram's values
	Histogram string `json:"histogram"` // HDR, V2, compressed, base64

	latencies *hdrhistogram.Histogram // in ns
}

// readPrinted reads what a client printed: one JSON object, or an HDR histogram log, whose values have that unit.
func readPrinted(out []byte, unit string) (p printed, err error) {
	switch text := bytes.TrimSpace(out); {
	case len(text) == 0:
		return p, errors.New("the client printed nothing; it is to print what it measured, as docs/start/workload.md shows it")
	case text[0] == '{':
		return readPrintedJSON(out)
	}
	return readHistogramLog(out, unit)
}

// fields are those that the object must have; what it does not say is not taken for 0.
var fields = []string{"wanted", "sent", "answered", "errors", "late", "unit", "histogram"}

func readPrintedJSON(out []byte) (p printed, err error) {
	in := json.NewDecoder(bytes.NewReader(out))
	in.DisallowUnknownFields()
	err = in.Decode(&p)
	if _, more := in.Token(); err == nil && !errors.Is(more, io.EOF) {
		err = errors.New("something follows the object")
	}
	if err != nil {
		at := in.InputOffset()
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			at = syntax.Offset
		} else if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			at = kind.Offset
		} else if errors.Is(err, io.ErrUnexpectedEOF) {
			at = int64(len(out))
		}
		line := 1 + bytes.Count(out[:min(int(at), len(out))], []byte("\n"))
		return p, fmt.Errorf("line %d that the client printed: %w", line, err)
	}
	var has map[string]json.RawMessage
	if err := json.Unmarshal(out, &has); err != nil {
		return p, err
	}
	for _, name := range fields {
		if _, there := has[name]; !there {
			return p, fmt.Errorf("the client printed no %q; an object has %s", name, strings.Join(fields, ", "))
		}
	}
	h, err := hdrhistogram.Decode([]byte(p.Histogram))
	if err != nil {
		return p, fmt.Errorf("the client's histogram is not HDR, V2, compressed, in base64: %w", err)
	}
	p.latencies = newLatencies()
	if err := addLatencies(p.latencies, h, p.Unit); err != nil {
		return p, err
	}
	if n := int(h.TotalCount()); n != p.Answered {
		return p, fmt.Errorf("the client's histogram has %d latencies, and it says that %d requests were answered", n, p.Answered)
	}
	if p.Sent > p.Wanted || p.Answered+p.Errors > p.Sent || min(p.Errors, p.Late, p.Answered) < 0 {
		return p, fmt.Errorf("the client's counts do not add up: wanted %d, sent %d, answered %d, errors %d, late %d", p.Wanted, p.Sent, p.Answered, p.Errors, p.Late)
	}
	return p, nil
}

// readHistogramLog reads intervals, one a line: [Tag=...,]start,length,max,histogram. It does not say its unit.
func readHistogramLog(out []byte, unit string) (p printed, err error) {
	if unit == "" {
		return p, errors.New("the client printed an HDR histogram log, which does not say its unit; write 'unit: us' (or ns, ms) beside its command")
	}
	p.latencies = newLatencies()
	number := 0
	for line := range strings.Lines(string(out)) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || strings.HasPrefix(line, `"StartTimestamp"`) {
			continue
		}
		cells := strings.Split(line, ",")
		if strings.HasPrefix(cells[0], "Tag=") {
			cells = cells[1:]
		}
		if len(cells) != 4 {
			return p, fmt.Errorf("line %d that the client printed is no interval of an HDR histogram log, start,length,max,histogram: %.60q", number, line)
		}
		h, err := hdrhistogram.Decode([]byte(cells[3]))
		if err == nil {
			err = addLatencies(p.latencies, h, unit)
		}
		if err != nil {
			return p, fmt.Errorf("line %d that the client printed: %w", number, err)
		}
	}
	p.Answered = int(p.latencies.TotalCount())
	p.Wanted, p.Sent = p.Answered, p.Answered
	return p, nil
}

// addLatencies adds a histogram of that unit to one of ns.
func addLatencies(to, from *hdrhistogram.Histogram, unit string) error {
	ns, known := plan.Units[unit]
	if !known {
		return fmt.Errorf("the client's latencies have the unit %q; it is one of ns, us, ms", unit)
	}
	for _, bar := range from.Distribution() {
		if bar.Count == 0 {
			continue
		}
		value := float64(bar.From+bar.To) / 2 * ns
		if value > float64(to.HighestTrackableValue()) {
			return fmt.Errorf("a latency of %v is beyond %v: is its unit %s?",
				time.Duration(value), time.Duration(to.HighestTrackableValue()), unit)
		}
		if err := to.RecordValues(int64(value), bar.Count); err != nil {
			return err
		}
	}
	return nil
}

// flaw says why figures do not count, of a client that was to offer a rate for some seconds; "": they do.
func (p printed) flaw(rate, seconds float64) string {
	due := rate * seconds
	const spread = 5 // standard deviations, of arrivals at random
	switch {
	case float64(p.Wanted) < due-spread*math.Sqrt(due):
		return fmt.Sprintf("the client offered %d requests, of %.0f that were wanted", p.Wanted, due)
	case beyond(p.Wanted-p.Sent, p.Wanted):
		return fmt.Sprintf("the client sent %d requests, of %d that were wanted", p.Sent, p.Wanted)
	case beyond(p.Errors, p.Sent):
		return fmt.Sprintf("the client counts %d errors in %d requests", p.Errors, p.Sent)
	case beyond(p.Late, p.Sent):
		return fmt.Sprintf("the client sent %d requests of %d late: what it measured is its own lateness", p.Late, p.Sent)
	}
	return ""
}

// beyond tells whether more than a hundredth is amiss.
func beyond(part, whole int) bool { return part*100 > whole }
