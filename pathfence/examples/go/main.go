// SPDX-License-Identifier: Apache-2.0

// A shop with two paths: items, and orders, which call a warehouse. Each request has one of eight connections to a database
// while it is served. docs/start/pathfence-go.md runs it.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	pathfence "temper.dev/temper/pathfence/go"
)

func main() {
	address := flag.String("listen", "localhost:8080", "`address` to serve at")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, *address); err != nil {
		log.Fatal(err)
	}
}

// serve serves the shop until ctx ends.
func serve(ctx context.Context, address string) error {
	fence, err := pathfence.New(pathfence.Config{Service: "shop", Workers: connections, Target: 500 * time.Millisecond})
	if err != nil {
		return err
	}
	defer fence.Close()

	database := make(pool, connections)
	shop := http.NewServeMux()
	warehouse := &http.Client{Transport: pathfence.Transport(nil)}
	shop.HandleFunc("GET /items/{id}", database.serve(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "item %s\n", r.PathValue("id"))
	}))
	shop.HandleFunc("GET /orders/{id}", database.serve(func(w http.ResponseWriter, r *http.Request) {
		answer, err := ask(r.Context(), warehouse, "http://"+address+"/warehouse")
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		fmt.Fprintf(w, "order %s: %s\n", r.PathValue("id"), answer)
	}))

	all := http.NewServeMux()
	all.Handle("/", fence.Handler(shop))
	all.Handle("/pathfence", fence.StateHandler()) // a service of yours has it where its metrics are
	all.Handle("/warehouse", new(store))
	server := http.Server{Handler: all, ReadHeaderTimeout: 10 * time.Second}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	log.Printf("the shop is at http://%s", listener.Addr())
	context.AfterFunc(ctx, func() { server.Close() })
	if err := server.Serve(listener); err != http.ErrServerClosed {
		return err
	}
	return nil
}

// connections is how many the database has for the shop.
const connections = 8

// pool has connections to a database.
type pool chan struct{}

// serve serves each request with a connection, as handlers do that keep a transaction open while they call others.
func (p pool) serve(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case p <- struct{}{}:
			defer func() { <-p }()
			h(w, r)
		case <-r.Context().Done():
		}
	}
}

func ask(ctx context.Context, client *http.Client, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return string(answer), err
}

// store is the warehouse. It stands for another service, and takes as long as it is told to.
type store struct{ takes atomic.Int64 }

// ServeHTTP implements http.Handler: POST sets how long a GET takes, such as /warehouse?takes=2s.
func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		takes, err := time.ParseDuration(cmp.Or(r.FormValue("takes"), "0"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.takes.Store(int64(takes))
		return
	}
	select {
	case <-time.After(time.Duration(s.takes.Load())):
		io.WriteString(w, "in stock")
	case <-r.Context().Done():
	}
}
