package fencedemo

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// Row is what became of the requests of one path in one shop while the warehouse was quick, or while it was slow.
type Row struct {
	Path      string  `json:"path"`
	Warehouse string  `json:"warehouse"` // quick or slow
	Fence     bool    `json:"fence"`
	Sent      int64   `json:"sent"`
	Waiting   int64   `json:"waiting"` // not answered yet
	InTime    int64   `json:"in_time"` // answered well within half a second
	Late      int64   `json:"late"`    // answered well after it
	Refused   int64   `json:"refused"` // by the fence
	GaveUp    int64   `json:"gave_up"` // the client, after three seconds
	Failed    int64   `json:"failed"`  // in another way
	MedianMS  float64 `json:"p50_ms"`  // of all that was answered or given up, but not refused; 0 where that is none
	P99MS     float64 `json:"p99_ms"`  // likewise
	PerSecond []int64 `json:"-"`       // of all the path's requests, those answered in time, by the second they were sent in
}

// Rows are the results until now: by path, then as the warehouse was, then without and with the fence.
func (d *Demo) Rows() []Row {
	var rows []Row
	for i, name := range []string{"items", "orders"} {
		for _, slow := range []bool{false, true} {
			for shop := range d.shops {
				rows = append(rows, d.paths[2*shop+i].row(name, slow, shop == fenced))
			}
		}
	}
	return rows
}

func (p *path) row(name string, slow, fence bool) Row {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.tallies[slow]
	r := Row{
		Path: name, Warehouse: "quick", Fence: fence, Sent: t.sent,
		InTime: t.ended[inTime], Late: t.ended[late], Refused: t.ended[refused], GaveUp: t.ended[gaveUp], Failed: t.ended[failed],
		MedianMS: float64(t.took.ValueAtQuantile(50)) / 1000, P99MS: float64(t.took.ValueAtQuantile(99)) / 1000,
		PerSecond: append([]int64(nil), p.seconds...),
	}
	if slow {
		r.Warehouse = "slow"
	}
	r.Waiting = r.Sent - r.InTime - r.Late - r.Refused - r.GaveUp - r.Failed
	return r
}

var columns = []string{"path", "warehouse", "fence", "sent", "in time", "late", "refused", "gave up", "failed", "p50", "p99"}

func (r Row) cells() []string {
	fence := "without"
	if r.Fence {
		fence = "with"
	}
	cells := []string{r.Path, r.Warehouse, fence}
	for _, n := range []int64{r.Sent, r.InTime, r.Late, r.Refused, r.GaveUp, r.Failed} {
		cells = append(cells, fmt.Sprint(n))
	}
	return append(cells, milliseconds(r.MedianMS), milliseconds(r.P99MS))
}

// milliseconds says a time as one reads it. What is as long as a client's patience may have been longer.
func milliseconds(ms float64) string {
	switch {
	case ms == 0:
		return "-"
	case ms >= 0.99*float64(patience.Milliseconds()):
		return fmt.Sprintf("%v s or more", patience.Seconds())
	}
	return fmt.Sprintf("%.0f ms", ms)
}

// WriteTable writes the results for a terminal.
func WriteTable(w io.Writer, rows []Row) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, strings.Join(columns, "\t"))
	for _, r := range rows {
		fmt.Fprintln(table, strings.Join(r.cells(), "\t"))
	}
	return table.Flush()
}

// Said is one sentence on what is happening, for a line of progress.
func (d *Demo) Said() string {
	d.mu.Lock()
	is := "quick"
	if d.isSlow() {
		is = "slow"
	}
	second := int(time.Since(d.start)/time.Second) - settled
	d.mu.Unlock()
	rows := d.Rows()
	at := func(r Row) int64 {
		if second < 0 || second >= len(r.PerSecond) {
			return 0
		}
		return r.PerSecond[second]
	}
	without, with := rows[0], rows[1]
	return fmt.Sprintf("the warehouse is %s; items in time a second: %d without the fence, %d with it", is, at(without), at(with))
}
