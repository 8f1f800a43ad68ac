// Package fencedemo shows what a fence does: two shops that differ in nothing but the fence serve the same requests, while a
// warehouse that one of their paths calls gets slow.
package fencedemo

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	pathfence "temper.dev/temper/pathfence/go"
)

// Demo is two shops, their clients, and what came of it.
type Demo struct {
	warehouse *warehouse
	servers   *servers
	paths     []*path   // as Rows has them: items and orders without the fence, then with it
	shops     [2]string // their addresses
	fence     *pathfence.Fence

	mu    sync.Mutex
	start time.Time
	end   time.Time // zero: it goes on
	spans []span    // in which the warehouse was slow
}

// span is a time since the start. It goes on while to is zero.
type span struct{ from, to time.Duration }

// New starts two shops on free ports of this machine.
func New() (*Demo, error) {
	return newDemo(network{
		listen: func() (net.Listener, error) { return net.Listen("tcp", "localhost:0") },
		dial:   (&net.Dialer{}).DialContext,
	})
}

func newDemo(n network) (_ *Demo, err error) {
	d := &Demo{warehouse: &warehouse{}, servers: &servers{net: n}}
	defer func() {
		if err != nil {
			d.Close()
		}
	}()
	d.warehouse.takes.Store(int64(quick))
	url, err := d.servers.serve(d.warehouse)
	if err != nil {
		return nil, err
	}
	for i, plain := range []bool{true, false} {
		if d.shops[i], d.fence, err = d.servers.openShop(url, plain); err != nil {
			return nil, err
		}
		d.paths = append(d.paths, newPath(d.shops[i]+"/items", itemsEvery), newPath(d.shops[i]+"/orders", ordersEvery))
	}
	return d, nil
}

// Close ends the shops.
func (d *Demo) Close() { d.servers.close() }

// Run sends requests until ctx ends, and waits for their answers.
func (d *Demo) Run(ctx context.Context) {
	start := time.Now()
	d.set(func() { d.start = start })
	client := &http.Client{Transport: d.servers.transport()}
	var all sync.WaitGroup
	for _, p := range d.paths {
		all.Go(func() { p.load(ctx, start, client) })
	}
	<-ctx.Done()
	d.set(func() { d.end = time.Now() })
	all.Wait()
}

func (d *Demo) set(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
}

// Slow makes the warehouse slow or quick again.
func (d *Demo) Slow(on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.start.IsZero() || on == d.isSlow() {
		return
	}
	now := time.Since(d.start)
	takes := quick
	if on {
		takes = slow
		d.spans = append(d.spans, span{from: now})
	} else {
		d.spans[len(d.spans)-1].to = now
	}
	d.warehouse.takes.Store(int64(takes))
	for _, p := range d.paths {
		p.setSlow(on)
	}
}

func (d *Demo) isSlow() bool { return len(d.spans) > 0 && d.spans[len(d.spans)-1].to == 0 }
