// Package fenceprofile measures what concurrency a class of paths makes use of, before a fence has to learn it.
package fenceprofile

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Step is what a class did with so many requests under way all the time.
type Step struct {
	Concurrency int64         `json:"concurrency"`
	Good        float64       `json:"good_per_s"` // answered well (2xx) and within the target
	Done        float64       `json:"done_per_s"`
	Hold        time.Duration `json:"hold_ns"` // median time of a request
}

// Steps are the concurrencies to measure at: 1, 2, 3, 4, 6, 8, 12, 16 and so on, and the most.
func Steps(most int64) (list []int64) {
	for c := int64(1); c < most; {
		list = append(list, c)
		switch {
		case c < 4:
			c++
		case c&(c-1) == 0:
			c = c * 3 / 2
		default:
			c = c * 4 / 3
		}
	}
	return append(list, most)
}

// Ramp sends requests to an address for so long, `concurrency` at a time, each as soon as the one before has ended.
func Ramp(ctx context.Context, address string, concurrency int64, target, length time.Duration) (Step, error) {
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: int(concurrency)}}
	defer client.CloseIdleConnections()
	var (
		mutex sync.Mutex
		times []time.Duration
		good  int
		fault error
		all   sync.WaitGroup
	)
	began := time.Now()
	for range concurrency {
		all.Go(func() {
			for ctx.Err() == nil {
				sent := time.Now()
				well, err := ask(ctx, client, address)
				took := time.Since(sent)
				mutex.Lock()
				switch {
				case ctx.Err() != nil: // cut off at the end of the step
				case err != nil:
					fault = err
					cancel()
				default:
					times = append(times, took)
					if well && took <= target {
						good++
					}
				}
				mutex.Unlock()
			}
		})
	}
	all.Wait()
	elapsed := time.Since(began).Seconds()
	switch {
	case fault != nil:
		return Step{}, fault
	case len(times) == 0:
		return Step{}, fmt.Errorf("%s answered nothing in %v, %d at a time", address, length, concurrency)
	}
	slices.Sort(times)
	return Step{concurrency, float64(good) / elapsed, float64(len(times)) / elapsed, times[(len(times)-1)/2]}, nil
}

// ask sends one request. An answer that is no success is no error: services shed.
func ask(ctx context.Context, client *http.Client, address string) (well bool, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return false, err
	}
	response, err := client.Do(request)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode/100 == 2, err
}
