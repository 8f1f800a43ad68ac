package fencedemo

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

const (
	itemsEvery  = 25 * time.Millisecond // 40 a second
	ordersEvery = 50 * time.Millisecond // 20 a second
	patience    = 3 * time.Second       // after which a client gives up
)

// outcome is how a request ended for its client.
type outcome int

const (
	inTime  outcome = iota
	late            // answered well after the target
	refused         // by the fence
	gaveUp          // after the client's patience
	failed
	outcomes
)

// tally counts the requests of one path, in one shop, while the warehouse was quick or slow.
type tally struct {
	sent  int64
	ended [outcomes]int64
	took  *hdrhistogram.Histogram // us, of all but those that were refused; those that gave up have their patience
}

func newTally() *tally {
	return &tally{took: hdrhistogram.New(1, patience.Microseconds()*2, 3)}
}

// path is one path of one shop as its clients see it. Clients are an open loop: they send when it is time, whatever became of
// the requests before.
type path struct {
	url   string
	every time.Duration

	mu      sync.Mutex
	slow    bool // the warehouse
	tallies map[bool]*tally
	seconds []int64 // answered in time, by the second since the start in which they were sent
}

func newPath(url string, every time.Duration) *path {
	return &path{url: url, every: every, tallies: map[bool]*tally{false: newTally(), true: newTally()}}
}

// setSlow says what the warehouse is from now on.
func (p *path) setSlow(slow bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slow = slow
}

// load sends requests until ctx ends, and waits for the last. A request of that time is counted, also where it ends later.
func (p *path) load(ctx context.Context, start time.Time, client *http.Client) {
	var all sync.WaitGroup
	defer all.Wait()
	for n := time.Duration(0); ; n++ {
		due := start.Add(n * p.every)
		if wait(ctx, time.Until(due)) != nil {
			return
		}
		p.mu.Lock()
		counted := p.tallies[p.slow]
		counted.sent++
		p.mu.Unlock()
		all.Go(func() {
			ended := p.ask(context.WithoutCancel(ctx), client, due, n)
			p.count(counted, due.Sub(start), time.Since(due), ended)
		})
	}
}

// ask sends one request. Its time counts from when it was due.
func (p *path) ask(ctx context.Context, client *http.Client, due time.Time, n time.Duration) outcome {
	ctx, cancel := context.WithDeadline(ctx, due.Add(patience))
	defer cancel()
	status, header, err := get(ctx, client, fmt.Sprintf("%s/%d", p.url, n))
	switch {
	case ctx.Err() != nil:
		return gaveUp
	case err == nil && status == http.StatusOK && time.Since(due) <= target:
		return inTime
	case err == nil && status == http.StatusOK:
		return late
	case err == nil && status == http.StatusServiceUnavailable && header.Get("x-pf-shed") != "":
		return refused
	}
	return failed
}

func (p *path) count(t *tally, sent, took time.Duration, ended outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t.ended[ended]++
	if ended != refused {
		_ = t.took.RecordValue(max(1, min(took, patience).Microseconds())) // is within the histogram's range
	}
	if ended == inTime {
		second := int(sent / time.Second)
		for len(p.seconds) <= second {
			p.seconds = append(p.seconds, 0)
		}
		p.seconds[second]++
	}
}
