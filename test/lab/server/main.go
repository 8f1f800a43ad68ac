// Command server answers over HTTP, and ends with status 3 once it has answered so many requests, unless it did before. With
// STALL it answers nothing for so long at the begin of each quarter of a second.
package main

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const ended = "/run/server-ended"

func main() {
	last, err := strconv.ParseInt(os.Getenv("LAST_REQUEST"), 10, 64)
	if err != nil {
		fmt.Fprintln(os.Stderr, "LAST_REQUEST:", err)
		os.Exit(2)
	}
	if _, err := os.Stat(ended); err == nil {
		last = -1
	}
	page, err := os.ReadFile(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	var asked atomic.Int64
	var stalled sync.RWMutex
	if stall, err := time.ParseDuration(os.Getenv("STALL")); err == nil {
		go func() {
			for at := time.Now(); ; at = at.Add(time.Second / 4) {
				time.Sleep(time.Until(at))
				stalled.Lock()
				time.Sleep(time.Until(at.Add(stall)))
				stalled.Unlock()
			}
		}()
	}
	http.HandleFunc("/page", func(w http.ResponseWriter, _ *http.Request) {
		stalled.RLock()
		defer stalled.RUnlock()
		if asked.Add(1) == last {
			fmt.Fprintln(os.Stderr, "that was the last one")
			_ = os.WriteFile(ended, nil, 0o644)
			os.Exit(3)
		}
		_, _ = w.Write(page)
	})
	fmt.Fprintln(os.Stderr, http.ListenAndServe("127.0.0.1:8080", nil))
	os.Exit(1)
}
