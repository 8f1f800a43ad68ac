package fencedemo

import (
	_ "embed"
	"fmt"
	"net/http"
	"strings"
	"time"

	"temper.dev/temper/internal/base/htmlpage"
	"temper.dev/temper/internal/base/plot"
)

//go:embed page.js
var script string

const (
	shownSeconds = 60
	// settled is how many seconds after its begin it is known what of a second was in time.
	settled = 2
	// plain and fenced are the shops.
	plain, fenced = 0, 1
)

// Page serves the page at /, what changes on it at /view, the fence's state at /pathfence, and takes POST /warehouse?is=slow or
// quick.
func (d *Demo) Page() http.Handler {
	pages := http.NewServeMux()
	pages.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("content-type", "text/html; charset=utf-8")
		_, _ = fmt.Fprint(w, d.HTML(true)) // whoever does not read it has gone
	})
	pages.HandleFunc("GET /view", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("content-type", "text/html; charset=utf-8")
		_, _ = fmt.Fprint(w, d.view()) // likewise
	})
	pages.Handle("GET /pathfence", d.fence.StateHandler())
	pages.HandleFunc("POST /warehouse", func(w http.ResponseWriter, r *http.Request) {
		switch is := r.URL.Query().Get("is"); is {
		case "slow", "quick":
			d.Slow(is == "slow")
			w.WriteHeader(http.StatusNoContent)
		default:
			http.Error(w, "the warehouse is slow or quick: /warehouse?is=slow", http.StatusBadRequest)
		}
	})
	// A page of somebody else's is not to switch anything, not even this.
	return http.NewCrossOriginProtection().Handler(pages)
}

// HTML is the page as it is now. It loads nothing; live, it follows what changes.
func (d *Demo) HTML(live bool) string {
	var b strings.Builder
	htmlpage.Begin(&b, "PathFence: one slow path")
	fmt.Fprintf(&b, `<p>Two shops, each with %d workers, serve the same requests: %d items and %d orders a second. An order calls a
warehouse; an item needs nothing else. The warehouse answers in %d ms; while it is slow, in %v s. One shop has the fence, the other
does not.</p>
`, workers, time.Second/itemsEvery, time.Second/ordersEvery, quick.Milliseconds(), slow.Seconds())
	if live {
		b.WriteString(`<p><button type="button" data-is="slow">Make the warehouse slow</button> <button type="button" data-is="quick">Make it quick again</button> <span id="said" role="status"></span></p>
`)
	}
	fmt.Fprintf(&b, "<main id=\"view\">\n%s</main>\n", d.view())
	if live {
		fmt.Fprintf(&b, "<script>%s</script>\n", script)
	}
	htmlpage.End(&b)
	return b.String()
}

// view is what changes on the page.
func (d *Demo) view() string {
	var b strings.Builder
	htmlpage.Charts(&b, d.charts())
	b.WriteString("<h2>Since the start</h2>\n")
	var rows [][]string
	for _, r := range d.Rows() {
		rows = append(rows, r.cells())
	}
	htmlpage.Table(&b, "Since the start", columns, rows)
	fmt.Fprintf(&b, `<p class="soft">In time is an answer within %v s of when the request was due. Clients send when it is time, and give up after %v s. Times are of all requests but those that were refused.</p>
<p class="soft">The shops: without the fence %s, with it %s.</p>
`, target.Seconds(), patience.Seconds(), d.shops[plain], d.shops[fenced])
	return b.String()
}

// shown is the time that charts show, in seconds since the start: the last minute.
type shown struct {
	from, to int // the first, and the first that is not shown
	slow     []plot.Span
}

func (d *Demo) shown() shown {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.end
	if now.IsZero() {
		now = time.Now()
	}
	elapsed := 0.0
	if !d.start.IsZero() {
		elapsed = now.Sub(d.start).Seconds()
	}
	t := shown{to: int(elapsed) - settled + 1}
	t.from = max(0, t.to-shownSeconds)
	for _, s := range d.spans {
		to := s.to.Seconds()
		if s.to == 0 {
			to = elapsed
		}
		t.slow = append(t.slow, plot.Span{From: s.from.Seconds(), To: to})
	}
	return t
}

func (d *Demo) charts() []plot.Chart {
	t, rows := d.shown(), d.Rows()
	return []plot.Chart{
		t.chart("items", "Items in time", itemsEvery, rows[0], rows[1]),
		t.chart("orders", "Orders in time", ordersEvery, rows[4], rows[5]),
	}
}

// chart is of one path, in either shop.
func (t shown) chart(id, title string, every time.Duration, rows ...Row) plot.Chart {
	c := plot.Chart{
		ID: id, Title: title, XLabel: "seconds", YLabel: "a second", FromZero: true, NeverLog: true,
		Spans: t.slow, SpanName: "the warehouse is slow", Level: &plot.Level{Y: float64(time.Second / every), Label: "sent"},
		Description: "Requests that were answered in time, by the second in which they were sent, without and with the fence.",
	}
	for at := t.from; at <= t.from+shownSeconds; at += 10 {
		c.XTicks = append(c.XTicks, plot.Tick{At: float64(at), Label: fmt.Sprint(at)})
	}
	for _, r := range rows {
		s := plot.Series{Label: "without the fence", Class: 1, Smooth: true}
		if r.Fence {
			s.Label, s.Class = "with the fence", 0
		}
		for at := t.from; at < t.to; at++ {
			y := 0.0
			if at < len(r.PerSecond) {
				y = float64(r.PerSecond[at])
			}
			s.Line = append(s.Line, plot.Point{X: float64(at) + 0.5, Y: y})
		}
		c.Series = append(c.Series, s)
	}
	return c
}
