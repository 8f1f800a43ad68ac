package load

import (
	"context"
	"sync"
	"time"
)

// Closed keeps so many requests of a flow under way from start until end, each sent as soon as the one before has its
// fate. Requests count from when they were sent.
func Closed(ctx context.Context, start, end time.Time, concurrency int, flow Flow, seed uint64, target Target, patience time.Duration) ([]Result, error) {
	var (
		mutex sync.Mutex
		all   []Result
		under sync.WaitGroup
	)
	source := flow.source(seed)
	for range concurrency {
		under.Go(func() {
			for ctx.Err() == nil {
				mutex.Lock()
				work := time.Duration(source.ExpFloat64() * float64(flow.Work))
				mutex.Unlock()
				sent := time.Now()
				if !sent.Before(end) {
					return
				}
				r := ask(target, Arrival{sent.Sub(start), flow.Path, work}, sent, patience)
				mutex.Lock()
				all = append(all, r)
				mutex.Unlock()
			}
		})
	}
	under.Wait()
	return all, ctx.Err()
}
