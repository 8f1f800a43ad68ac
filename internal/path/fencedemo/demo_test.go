package fencedemo

import (
	"context"
	"encoding/xml"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a network in memory, so that a demonstration can run in a bubble, whose time is not the host's.
type pipes struct{ listeners map[string]*pipeListener }

type pipeListener struct {
	name     string
	incoming chan net.Conn
	closed   chan struct{}
}

func (p *pipes) network() network {
	return network{
		listen: func() (net.Listener, error) {
			l := &pipeListener{name: fmt.Sprintf("server-%d:80", len(p.listeners)), incoming: make(chan net.Conn), closed: make(chan struct{})}
			p.listeners[l.name] = l
			return l, nil
		},
		dial: func(ctx context.Context, _, address string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			select {
			case p.listeners[address].incoming <- theirs:
				return ours, nil
			case <-p.listeners[address].closed:
				return nil, net.ErrClosed
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
	}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.incoming:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { close(l.closed); return nil }
func (l *pipeListener) Addr() net.Addr { return l }
func (*pipeListener) Network() string  { return "pipe" }
func (l *pipeListener) String() string { return l.name }

// play runs a demonstration of 40 s, in which the warehouse is slow from 10 to 20 s, and returns what is seen at the end. No
// request is due in the moment of a change.
func play(t *testing.T) (rows []Row, page, view string) {
	synctest.Test(t, func(t *testing.T) {
		d, err := newDemo((&pipes{listeners: map[string]*pipeListener{}}).network())
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		const between = 10 * time.Millisecond
		ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second+between)
		defer cancel()
		time.AfterFunc(10*time.Second+between, func() { d.Slow(true) })
		time.AfterFunc(20*time.Second+between, func() { d.Slow(false) })
		d.Run(ctx)
		rows, page, view = d.Rows(), d.HTML(false), d.view()
	})
	return rows, page, view
}

// What the page says of a fence, and of a pool without, is so.
func TestWhatItShows(t *testing.T) {
	seen, _, _ := play(t)
	rows := map[string]Row{}
	for _, r := range seen {
		name := fmt.Sprintf("%s, %s, fence %v", r.Path, r.Warehouse, r.Fence)
		rows[name] = r
		if all := r.InTime + r.Late + r.Refused + r.GaveUp + r.Failed; all != r.Sent || r.Waiting != 0 || r.Failed != 0 {
			t.Errorf("%s: %d ended, %d of them failed, %d wait; want all %d ended, none failed", name, all, r.Failed, r.Waiting, r.Sent)
		}
	}
	for _, want := range []struct {
		row         string
		sent        int64
		least, most int64 // in time
	}{
		{"items, quick, fence false", 1201, 1120, 1201}, // those that come first after it was slow wait
		{"items, quick, fence true", 1201, 1201, 1201},
		{"items, slow, fence false", 400, 0, 40},
		{"items, slow, fence true", 400, 400, 400},
		{"orders, quick, fence false", 601, 560, 601},
		{"orders, quick, fence true", 601, 560, 601},
		{"orders, slow, fence false", 200, 0, 20}, // the warehouse takes four times what is in time
		{"orders, slow, fence true", 200, 0, 20},
	} {
		t.Run(want.row, func(t *testing.T) {
			r := rows[want.row]
			if r.Sent != want.sent || r.InTime < want.least || r.InTime > want.most {
				t.Errorf("%d of %d are in time, want %d to %d of %d", r.InTime, r.Sent, want.least, want.most, want.sent)
			}
		})
	}
	if without, with := rows["items, slow, fence false"], rows["items, slow, fence true"]; without.MedianMS < 500 || with.P99MS > 50 {
		t.Errorf("items while the warehouse is slow: median %v ms without the fence, p99 %v ms with it; want 500 and more, 50 and less", without.MedianMS, with.P99MS)
	}
}

func TestPage(t *testing.T) {
	_, page, view := play(t)
	if n := strings.Count(page, "<svg"); n != 2 {
		t.Errorf("the page has %d plots, want 2", n)
	}
	if strings.Contains(page, "<script") || strings.Contains(page, "<button") {
		t.Error("a page that is kept has buttons or a script, want what it shows alone")
	}
	if err := xml.Unmarshal([]byte("<view>"+view+"</view>"), new(struct{})); err != nil {
		t.Errorf("the view is not well-formed: %v", err)
	}
	if n := strings.Count(view, `class="s5"`); n != 4 { // in either plot and its legend
		t.Errorf("%d shades, want one in each plot and each legend", n)
	}
}

func TestPageTakesOrders(t *testing.T) {
	for _, c := range []struct {
		name, method, path, site string
		want                     int
	}{
		{"the page", "GET", "/", "", http.StatusOK},
		{"what changes on it", "GET", "/view", "", http.StatusOK},
		{"the fence's state", "GET", "/pathfence", "", http.StatusOK},
		{"its switch", "POST", "/pathfence", "same-origin", http.StatusMethodNotAllowed},
		{"another page", "GET", "/else", "", http.StatusNotFound},
		{"slow", "POST", "/warehouse?is=slow", "same-origin", http.StatusNoContent},
		{"slow, by curl", "POST", "/warehouse?is=slow", "", http.StatusNoContent},
		{"neither", "POST", "/warehouse?is=away", "same-origin", http.StatusBadRequest},
		{"from somebody else's page", "POST", "/warehouse?is=slow", "cross-site", http.StatusForbidden},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, err := newDemo((&pipes{listeners: map[string]*pipeListener{}}).network())
				if err != nil {
					t.Fatal(err)
				}
				defer d.Close()
				r := httptest.NewRequest(c.method, c.path, nil)
				if c.site != "" {
					r.Header.Set("sec-fetch-site", c.site)
				}
				w := httptest.NewRecorder()
				d.Page().ServeHTTP(w, r)
				if w.Code != c.want {
					t.Errorf("status %d, want %d: %s", w.Code, c.want, w.Body)
				}
			})
		})
	}
}
