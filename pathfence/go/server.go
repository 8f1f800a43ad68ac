package pathfence

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"mime"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/felixge/httpsnoop"

	"temper.dev/temper/pathfence/go/core"
	"temper.dev/temper/pathfence/go/internal/wire"
)

// HandlerOption is how a handler differs from the usual one.
type HandlerOption func(*handler)

// Keys says which path a request is of, as a key: 1 to 64 of a-z A-Z 0-9 . _ / : + - ~. There should be as many as there are
// routes, whatever clients ask for. Without it, and where it gives "", it is made of the http.ServeMux's pattern, as KeyOf does.
func Keys(key func(*http.Request) string) HandlerOption {
	return func(h *handler) { h.keys = key }
}

// Trusted says which clients may choose keys, depths and long deadlines. Without it, none may.
func Trusted(client func(*http.Request) bool) HandlerOption {
	return func(h *handler) { h.trusted = client }
}

// Exempt says which requests need no permit, besides those for /healthz, /livez and /readyz. A probe that is refused has the
// service restarted.
func Exempt(request func(*http.Request) bool) HandlerOption {
	return func(h *handler) { h.exempt = request }
}

// RefuseWith writes the answer to a request that is refused. Without it, the answer has status 503 and no body. Headers are
// set already.
func RefuseWith(answer func(w http.ResponseWriter, r *http.Request, reason string)) HandlerOption {
	return func(h *handler) { h.refuse = answer }
}

// router is http.ServeMux, or what has patterns as it does.
type router interface {
	Handler(r *http.Request) (h http.Handler, pattern string)
}

type handler struct {
	fence   *Fence
	next    http.Handler
	routes  router // nil: next has no patterns
	keys    func(*http.Request) string
	trusted func(*http.Request) bool
	exempt  func(*http.Request) bool
	refuse  func(http.ResponseWriter, *http.Request, string)
}

// Handler puts the fence before an http.ServeMux, or before any handler with the option Keys. It panics where there is
// neither: all requests would be of one class.
//
// What is to turn requests away cheaply, such as authentication, belongs before it. A request that is not routed needs no
// permit. One whose connection is hijacked (a WebSocket), or whose response is text/event-stream, gives its permit back then;
// what waits otherwise for something that is no call does so between [Permit.Pause] and [Permit.Resume].
func (f *Fence) Handler(next http.Handler, options ...HandlerOption) http.Handler {
	h := &handler{fence: f, next: next, refuse: func(w http.ResponseWriter, _ *http.Request, _ string) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}}
	h.routes, _ = next.(router)
	for _, set := range options {
		set(h)
	}
	if h.routes == nil && h.keys == nil {
		panic(fmt.Sprintf("pathfence: %T has no patterns, so all of its requests would be of one class; put the fence before the http.ServeMux, or give Handler the option Keys", next))
	}
	return h
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key, free := h.key(r)
	if free {
		h.next.ServeHTTP(w, r)
		return
	}
	s, err := h.fence.Admit(r.Context(), Incoming{
		Header:  func(name string) string { return header(r.Header, name) },
		Key:     key,
		Trusted: h.trusted != nil && h.trusted(r),
	})
	if err != nil {
		reason := "expired" // or the client has gone, and nobody reads why
		var refused *RefusedError
		if errors.As(err, &refused) {
			reason = refused.Reason
		}
		w.Header().Set(wire.ShedHeader, reason)
		w.Header().Set("retry-after", "1")
		h.refuse(w, r, reason)
		return
	}
	h.serve(w, r, s)
}

// header is the first value of one, or all of baggage.
func header(h http.Header, name string) string {
	if name == "baggage" {
		return strings.Join(h.Values(name), ",")
	}
	return h.Get(name)
}

// key is the request's, and whether it needs no permit.
func (h *handler) key(r *http.Request) (key string, free bool) {
	switch r.URL.Path {
	case "/healthz", "/livez", "/readyz":
		return "", true
	}
	if h.exempt != nil && h.exempt(r) {
		return "", true
	}
	if h.keys != nil {
		key = h.keys(r)
	}
	if key != "" || h.routes == nil {
		return key, false
	}
	_, pattern := h.routes.Handler(r)
	return keyOf(r.Method, pattern), pattern == ""
}

const longestKey = 64

// KeyOf is the key of a pattern of http.ServeMux: GET:/orders/:id of "GET /orders/{id}". Requests of a pattern without a method
// have keys for each method; this is that of GET, which HEAD has, too.
func KeyOf(pattern string) string { return keyOf(http.MethodGet, pattern) }

// keyOf is the key of a request with this method. One that is too long keeps its start and a hash.
func keyOf(method, pattern string) string {
	if named, rest, has := strings.Cut(pattern, " "); has {
		method, pattern = named, strings.TrimLeft(rest, " \t")
	}
	pattern = methodOf(method) + ":" + pattern
	key := strings.Map(func(c rune) rune {
		switch {
		case c == '{':
			return ':'
		case c == '*':
			return '+'
		case core.ValidName(string(c)):
			return c
		}
		return -1
	}, pattern)
	if len(key) <= longestKey {
		return key
	}
	sum := fnv.New32a()
	sum.Write([]byte(pattern))
	hash := fmt.Sprintf("~%08x", sum.Sum32())
	return key[:longestKey-len(hash)] + hash
}

// methodOf: HEAD is served as GET is, and clients may make up methods.
func methodOf(method string) string {
	switch method {
	case http.MethodHead:
		return http.MethodGet
	case http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, http.MethodTrace:
		return method
	}
	return "ANY"
}

// serve serves a request that has a permit.
func (h *handler) serve(w http.ResponseWriter, r *http.Request, s *Serving) {
	a := answer{to: w, of: s, status: http.StatusOK}
	completed := false
	defer func() {
		switch {
		case r.Context().Err() == context.Canceled:
			s.permit.Release(Cancel)
		case !completed: // it panics
			s.permit.Release(Fail)
		default:
			s.permit.Release(outcomeOf(a.status))
		}
	}()
	h.next.ServeHTTP(a.watched(), r.WithContext(s.In(r.Context())))
	completed = true
}

// outcomeOf is what a status says. Redirects, and faults of the client, are hardly work.
func outcomeOf(status int) Outcome {
	switch {
	case status >= 500:
		return Fail
	case status >= 200 && status < 300:
		return OK
	}
	return Light
}

// answer is what is known of a response.
type answer struct {
	to     http.ResponseWriter
	of     *Serving
	once   sync.Once
	status int
}

// begins is called before the first byte of the response.
func (a *answer) begins(status int) {
	a.once.Do(func() {
		a.status = status
		// A refusal of a peer is passed on as such: no client is to try again.
		if reason := a.of.RefusedBelow(); reason != "" && status >= 500 {
			a.to.Header().Set(wire.ShedHeader, reason)
		}
		if kind, _, _ := mime.ParseMediaType(a.to.Header().Get("content-type")); kind == "text/event-stream" {
			a.of.permit.Pause() // from now on it waits for events
		}
	})
}

// watched has all that the writer itself has, such as http.Flusher.
func (a *answer) watched() http.ResponseWriter {
	return httpsnoop.Wrap(a.to, httpsnoop.Hooks{
		WriteHeader: func(write httpsnoop.WriteHeaderFunc) httpsnoop.WriteHeaderFunc {
			return func(status int) {
				if status >= 200 || status == http.StatusSwitchingProtocols {
					a.begins(status)
				}
				write(status)
			}
		},
		Write: func(write httpsnoop.WriteFunc) httpsnoop.WriteFunc {
			return func(b []byte) (int, error) {
				a.begins(http.StatusOK)
				return write(b)
			}
		},
		ReadFrom: func(read httpsnoop.ReadFromFunc) httpsnoop.ReadFromFunc {
			return func(src io.Reader) (int64, error) {
				a.begins(http.StatusOK)
				return read(src)
			}
		},
		Flush: func(flush httpsnoop.FlushFunc) httpsnoop.FlushFunc {
			return func() {
				a.begins(http.StatusOK)
				flush()
			}
		},
		Hijack: func(hijack httpsnoop.HijackFunc) httpsnoop.HijackFunc {
			return func() (net.Conn, *bufio.ReadWriter, error) {
				conn, buffer, err := hijack()
				if err == nil {
					a.of.permit.Release(Light)
				}
				return conn, buffer, err
			}
		},
	})
}
