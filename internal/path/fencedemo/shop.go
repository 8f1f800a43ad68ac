package fencedemo

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	pathfence "temper.dev/temper/pathfence/go"
)

const (
	workers   = 8
	target    = 500 * time.Millisecond // within which an answer is in time
	itemTakes = 5 * time.Millisecond
	quick     = 20 * time.Millisecond // what the warehouse takes while all is well
	slow      = 2 * time.Second       // and while it is not
)

// network is where servers listen and clients connect.
type network struct {
	listen func() (net.Listener, error)
	dial   func(ctx context.Context, network, address string) (net.Conn, error)
}

// warehouse stands for a service that the shops call. Any number of calls are served at once.
type warehouse struct{ takes atomic.Int64 }

// ServeHTTP implements http.Handler.
func (w *warehouse) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	if err := wait(r.Context(), time.Duration(w.takes.Load())); err == nil {
		_, _ = io.WriteString(out, "in stock") // whoever does not read it has gone
	}
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// openShop starts a service with two paths: items, which need nothing else, and orders, which call the warehouse. Both are served
// by a pool of workers, with a fence before it, or, with plain, without any.
func (s *servers) openShop(warehouse string, plain bool) (url string, fence *pathfence.Fence, err error) {
	client := &http.Client{Transport: pathfence.Transport(s.transport())}
	taken := make(pool, workers)
	paths := http.NewServeMux()
	paths.HandleFunc("GET /items/{id}", taken.serve(func(w http.ResponseWriter, r *http.Request) {
		if wait(r.Context(), itemTakes) == nil {
			_, _ = io.WriteString(w, "item\n") // whoever does not read it has gone
		}
	}))
	paths.HandleFunc("GET /orders/{id}", taken.serve(func(w http.ResponseWriter, r *http.Request) {
		if _, _, err := get(r.Context(), client, warehouse); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
		}
	}))
	if plain {
		url, err = s.serve(paths)
		return url, nil, err
	}
	if fence, err = pathfence.New(pathfence.Config{Service: "shop", Workers: workers, Target: target}); err != nil {
		return "", nil, err
	}
	s.onClose = append(s.onClose, fence.Close)
	url, err = s.serve(fence.Handler(paths))
	return url, fence, err
}

// pool is of workers.
type pool chan struct{}

// serve serves as many requests at once as there are workers, in order of arrival.
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

// servers are all that the demonstration has started.
type servers struct {
	net     network
	onClose []func()
}

// serve serves in the background until close.
func (s *servers) serve(h http.Handler) (url string, err error) {
	listener, err := s.net.listen()
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener) // it ends by close only
	}()
	s.onClose = append(s.onClose, func() { _ = server.Close(); <-ended })
	return "http://" + listener.Addr().String(), nil
}

// transport has connections of its own, as many as are needed.
func (s *servers) transport() *http.Transport {
	t := &http.Transport{DialContext: s.net.dial, MaxIdleConnsPerHost: 1024}
	s.onClose = append(s.onClose, t.CloseIdleConnections)
	return t
}

func (s *servers) close() {
	for i := len(s.onClose) - 1; i >= 0; i-- {
		s.onClose[i]()
	}
}

// get reads an answer to its end.
func get(ctx context.Context, client *http.Client, url string) (status int, header http.Header, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, response.Header, errors.Join(err, response.Body.Close())
}
