// Command server answers over HTTP, and ends with status 3 once it has answered so many requests, unless it did before.
package main

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
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
	http.HandleFunc("/page", func(w http.ResponseWriter, _ *http.Request) {
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
