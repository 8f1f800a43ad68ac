package pathfence

import (
	"context"
	"sync/atomic"
	"time"

	"temper.dev/temper/pathfence/go/core"
	"temper.dev/temper/pathfence/go/internal/wire"
)

// Incoming is a request as it comes in. Servers for which there is no adapter give it to [Fence.Admit].
type Incoming struct {
	// Header gives the first value of a header, and all values, joined by commas, of baggage; "" where there is none.
	Header func(name string) string
	// Key is the path's, where the client names none that counts.
	Key string
	// Trusted says whether the client may choose key, depth and a long deadline.
	Trusted bool
}

// Serving is a request that has been admitted.
type Serving struct {
	permit  *Permit
	carried wire.Context
	since   time.Time // when it came: its wait for a permit is time that it has used

	below atomic.Pointer[string] // why a peer that it called refused, if one did
}

// Admit waits for a permit for a request that may come from another service, or from this process itself. Whoever calls it
// serves the request with the context of [Serving.In], and then releases [Serving.Permit]. Errors are as of [Fence.Acquire].
func (f *Fence) Admit(ctx context.Context, in Incoming) (*Serving, error) {
	s := &Serving{since: time.Now(), carried: wire.Read(in.Header)}
	if !in.Trusted {
		s.carried = s.carried.Untrusted()
	}
	if s.carried.Path == "" {
		s.carried.Path = in.Key
	}
	if end, has := ctx.Deadline(); has {
		s.carried = s.carried.AtMost(max(1, time.Until(end)))
	}
	var err error
	s.permit, err = f.Acquire(ctx, f.request(s.carried, in))
	if err != nil {
		return nil, err
	}
	return s, nil
}

// request is what the fence is asked for. One that this process makes itself runs on the permit of the one that makes it.
func (f *Fence) request(carried wire.Context, in Incoming) Request {
	r := Request{Key: carried.Path, Timeout: carried.Timeout, untrusted: !in.Trusted}
	if f.service != "" {
		r.Depth = carried.Depth(f.service)
	}
	permit, depth := f.secret.Caller(in.Header(wire.WithinHeader))
	r.Depth = max(r.Depth, depth)
	if r.Depth <= core.MaxDepth { // beyond, it is a circle
		r.parent = permit
	}
	return r
}

// Permit is the request's.
func (s *Serving) Permit() *Permit { return s.permit }

// RefusedBelow is why a peer that the request called refused; "": none did. A failure because of that is a refusal, too.
func (s *Serving) RefusedBelow() string {
	if reason := s.below.Load(); reason != nil {
		return *reason
	}
	return ""
}

type servingKey struct{}

// In is the context of what is done for the request.
func (s *Serving) In(ctx context.Context) context.Context {
	return context.WithValue(ctx, servingKey{}, s)
}

// ServingOf is the request that the context belongs to; nil: none.
func ServingOf(ctx context.Context) *Serving {
	s, _ := ctx.Value(servingKey{}).(*Serving)
	return s
}

// PermitOf is the permit of the request that the context belongs to; nil: none.
func PermitOf(ctx context.Context) *Permit {
	if s := ServingOf(ctx); s != nil {
		return s.permit
	}
	return nil
}

// Outgoing is a call that a request makes. Clients for which there is no adapter give it to [Serving.Calls].
type Outgoing struct {
	// Edge is what is called, as a key.
	Edge string
	// Peer says whether that is a service of one's own, which is sent what travels with the request.
	Peer bool
	// Local says whether it may be this process itself.
	Local bool
}

// Calls notes a call, and gives the headers to send with it.
func (s *Serving) Calls(out Outgoing, set func(name, value string)) {
	s.permit.Edge(out.Edge)
	if name := s.permit.name(); name != "" && (out.Peer || out.Local) {
		set(wire.WithinHeader, name)
	}
	if out.Peer {
		s.carried.Onward(s.permit.fence.service, time.Since(s.since)).Write(set)
	}
}

// Refused notes that a peer refused a call of the request, and why.
func (s *Serving) Refused(reason string) { s.below.Store(&reason) }
