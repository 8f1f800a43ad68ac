// Command client asks a server over HTTP at even times, RATE times a second for so many seconds, and prints what it
// measured as 'temper-lab bench run' reads it. From a run on it fails.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// runs is where it counts how often it was started.
const runs = "/run/client-runs"

func main() {
	url := os.Args[1]
	rate, seconds, last := number(os.Getenv("RATE")), number(os.Args[2]), number(os.Args[3])
	text, _ := os.ReadFile(runs) // there is none at first
	if float64(len(text)) >= last {
		fmt.Fprintln(os.Stderr, "no more")
		os.Exit(4)
	}
	if err := os.WriteFile(runs, append(text, '.'), 0o644); err != nil {
		fail(err)
	}
	h := hdrhistogram.New(1, 60_000_000, 3)
	var lock sync.Mutex
	var all sync.WaitGroup
	wanted, answered := int(rate*seconds), 0
	start := time.Now()
	for i := range wanted {
		due := start.Add(time.Duration(float64(i) / rate * float64(time.Second)))
		time.Sleep(time.Until(due))
		all.Go(func() {
			answer, err := http.Get(url)
			if err != nil {
				return
			}
			defer answer.Body.Close()
			if _, err := io.Copy(io.Discard, answer.Body); err != nil {
				return
			}
			lock.Lock()
			defer lock.Unlock()
			answered++
			if err := h.RecordValue(time.Since(due).Microseconds()); err != nil {
				fail(err)
			}
		})
	}
	all.Wait()
	histogram, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		fail(err)
	}
	err = json.NewEncoder(os.Stdout).Encode(map[string]any{
		"wanted": wanted, "sent": wanted, "answered": answered, "errors": wanted - answered, "late": 0,
		"unit": "us", "histogram": string(histogram),
	})
	if err != nil {
		fail(err)
	}
}

func number(text string) float64 {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		fail(err)
	}
	return value
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(2)
}
