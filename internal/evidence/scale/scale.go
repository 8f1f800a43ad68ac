// Package scale has records of what the agent of a node takes (make scale), and the bars that they are held to.
package scale

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"temper.dev/temper/internal/base/host"
)

// Record is what one scenario came to.
type Record struct {
	Scenario  string   `json:"scenario"`            // in words
	Agent     string   `json:"agent"`               // SHA-256 of its program
	Scheduler string   `json:"scheduler,omitempty"` // SHA-256 of the BPF object, where one was attached
	Kernel    string   `json:"kernel"`
	Cluster   string   `json:"cluster"` // version of the API server
	Figures   []Figure `json:"figures"`
}

// Figure is what was counted. One without a bar is told for its own sake.
type Figure struct {
	Name  string   `json:"name"`
	Value float64  `json:"value"`
	Unit  string   `json:"unit,omitempty"`
	Most  *float64 `json:"most,omitempty"`  // the bar
	Least *float64 `json:"least,omitempty"` // the bar
}

// Add adds a figure without a bar, and gives it for one to be set.
func (r *Record) Add(name string, value float64, unit string) *Figure {
	r.Figures = append(r.Figures, Figure{Name: name, Value: math.Round(value*1000) / 1000, Unit: unit})
	return &r.Figures[len(r.Figures)-1]
}

// AtMost sets a bar from above.
func (f *Figure) AtMost(bar float64) { f.Most = &bar }

// AtLeast sets a bar from below.
func (f *Figure) AtLeast(bar float64) { f.Least = &bar }

// OK is whether the bar is met.
func (f Figure) OK() bool {
	return (f.Most == nil || f.Value <= *f.Most) && (f.Least == nil || f.Value >= *f.Least)
}

// Failed are the figures that do not meet their bars.
func (r *Record) Failed() []Figure {
	return slices.DeleteFunc(slices.Clone(r.Figures), Figure.OK)
}

func (f Figure) String() string { return fmt.Sprintf("%s: %s, bar %s", f.Name, f.value(), f.bar()) }

func (f Figure) value() string { return strings.TrimSpace(fmt.Sprintf("%.6g %s", f.Value, f.Unit)) }

func (f Figure) bar() string {
	switch {
	case f.Most != nil:
		return fmt.Sprintf("at most %g", *f.Most)
	case f.Least != nil:
		return fmt.Sprintf("at least %g", *f.Least)
	}
	return "none"
}

// Write writes the record to a file.
func (r *Record) Write(path string) error { return host.WriteJSON(path, r) }

// Table shows the record in a document.
func (r *Record) Table(w io.Writer) {
	of := fmt.Sprintf("Agent %.12s, Kubernetes %s, kernel %s", r.Agent, r.Cluster, r.Kernel)
	if r.Scheduler != "" {
		of += fmt.Sprintf(", BPF object %.12s", r.Scheduler)
	}
	fmt.Fprintf(w, "\n## %s\n\n%s.\n\n| figure | | bar | |\n| --- | --- | --- | --- |\n", r.Scenario, of)
	for _, f := range r.Figures {
		verdict := ""
		switch {
		case f.Most == nil && f.Least == nil:
		case f.OK():
			verdict = "met"
		default:
			verdict = "**missed**"
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s |\n", f.Name, f.value(), strings.TrimPrefix(f.bar(), "none"), verdict)
	}
}
