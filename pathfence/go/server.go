package pathfence

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"reflect"
	"strings"

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

// Exempt says which requests need no permit, besides those of the routes /healthz, /livez and /readyz. A probe that is refused
// has the service restarted.
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
// permit. One whose connection is hijacked (a WebSocket), or whose response begins as text/event-stream, gives its permit back
// then; what waits otherwise for something that is no call does so between [Permit.Pause] and [Permit.Resume].
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
	s := h.fence.Prepare(r.Context(), Incoming{
		Header:  func(name string) string { return header(r.Header, name) },
		Key:     key,
		Trusted: h.trusted != nil && h.trusted(r),
	})
	if err := s.Admit(r.Context()); err != nil {
		reason := "expired" // or the client has gone, and nobody reads why
		var refused *RefusedError
		if errors.As(err, &refused) {
			reason = refused.Reason
		}
		h.refused(w, r, s, reason)
		return
	}
	h.serve(w, r, s)
}

// refused answers a request that got no permit.
func (h *handler) refused(w http.ResponseWriter, r *http.Request, s *Serving, reason string) {
	w.Header().Set(wire.ShedHeader, reason)
	w.Header().Set("retry-after", s.retryAfter())
	h.refuse(w, r, reason)
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
	if h.exempt != nil && h.exempt(r) {
		return "", true
	}
	routed := true
	if h.keys != nil {
		key = h.keys(r)
	}
	if key == "" && h.routes != nil {
		key, routed = routeOf(h.routes, r)
	}
	return key, !routed || isProbe(r.URL.Path) && key == keyOf(r.Method, r.URL.Path)
}

// isProbe says whether a path is one that Kubernetes' probes have. It is exempt where it is a route, not where some other
// route takes all paths.
func isProbe(path string) bool {
	return path == "/healthz" || path == "/livez" || path == "/readyz"
}

// redirect is what http.ServeMux answers with where a slash is missing. Its pattern is then what the client has asked for.
var redirect = reflect.TypeOf(http.RedirectHandler("", http.StatusFound))

const mostNested = 8 // muxes in each other

// routeOf is the key of the route that serves a request, also in muxes that are routes of others, and whether there is one.
func routeOf(routes router, r *http.Request) (key string, routed bool) {
	for range mostNested {
		next, pattern := routes.Handler(r)
		if pattern == "" || reflect.TypeOf(next) == redirect {
			return "", false
		}
		key = keyOf(r.Method, pattern)
		nested, is := next.(router)
		if !is {
			break
		}
		routes = nested
	}
	return key, true
}

// KeyOf is the key of a pattern of http.ServeMux: GET:/orders/:id of "GET /orders/{id}". Requests of a pattern without a method
// have keys for each method; this is that of GET, which HEAD has, too.
func KeyOf(pattern string) string { return keyOf(http.MethodGet, pattern) }

// keyOf is the key of a request with this method. One that is too long, or has
// other letters, keeps its start and a hash.
func keyOf(method, pattern string) string {
	if named, rest, has := strings.Cut(pattern, " "); has {
		method, pattern = named, strings.TrimLeft(rest, " \t")
	}
	pattern = methodOf(method) + ":" + pattern
	lost := false
	key := strings.Map(func(c rune) rune {
		switch {
		case c == '{':
			return ':'
		case c == '*':
			return '+'
		case core.ValidName(string(c)):
			return c
		}
		lost = lost || c != '}' && c != '$'
		return -1
	}, pattern)
	if len(key) <= core.MaxName && !lost {
		return key
	}
	sum := fnv.New32a()
	sum.Write([]byte(pattern))
	hash := fmt.Sprintf("~%08x", sum.Sum32())
	return key[:min(len(key), core.MaxName-len(hash))] + hash
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
	a := &answer{ResponseWriter: w, of: s, status: http.StatusOK, waits: clientWaits{permit: s.permit}}
	inner := r.WithContext(s.In(r.Context()))
	if r.Body != nil && r.Body != http.NoBody {
		inner.Body = &body{ReadCloser: r.Body, ctx: r.Context(), of: s, waits: clientWaits{permit: s.permit}}
	}
	completed := false
	defer func() {
		// What the server removes, and what is logged, it looks for in its own request.
		r.MultipartForm, r.Pattern = inner.MultipartForm, inner.Pattern
		switch {
		case errors.Is(r.Context().Err(), context.Canceled):
			s.permit.Release(Cancel)
		case !completed: // it panics
			s.permit.Release(Fail)
		default:
			s.permit.Release(outcomeOf(a.status))
		}
	}()
	h.next.ServeHTTP(a, inner)
	completed = true
	if reason := s.refusedLate(); reason != "" && !a.begun {
		h.refused(w, r, s, reason)
	}
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
