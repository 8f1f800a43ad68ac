package pathfence

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

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

// Serving is a request that is served.
type Serving struct {
	fence   *Fence
	permit  *Permit
	carried wire.Context
	since   time.Time // when it came: its wait for a permit is time that it has used
	caller  *Serving  // the request of this process that waits for it; nil: none

	late  atomic.Pointer[string] // why it was refused when its body had come; nil: it was not
	below atomic.Pointer[string] // why the peer that answered last refused; nil: it did not
}

// Admit waits for a permit for a request that may come from another service, or from this process itself. Whoever calls it
// serves the request with the context of [Serving.In], and then releases [Serving.Permit]. Errors are as of [Fence.Acquire].
func (f *Fence) Admit(ctx context.Context, in Incoming) (*Serving, error) {
	s := f.Prepare(ctx, in)
	if err := s.Admit(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// Prepare is Admit without the wait: the request has no permit until [Serving.Admit].
func (f *Fence) Prepare(ctx context.Context, in Incoming) *Serving {
	s := &Serving{fence: f, since: time.Now(), carried: wire.Read(in.Header), caller: takeCaller(in.Header(wire.WithinHeader))}
	if s.caller == nil {
		s.caller = ServingOf(ctx)
	}
	if !in.Trusted {
		s.carried = s.carried.Untrusted()
	}
	if s.carried.Path == "" {
		s.carried.Path = in.Key
	}
	var left time.Duration // by this service's own word, or gRPC's, which goes on by itself
	if end, has := ctx.Deadline(); has {
		left = max(1, time.Until(end))
	}
	r := Request{Key: s.carried.Path, Timeout: s.carried.AtMost(left).Timeout, untrusted: !in.Trusted}
	if f.service != "" {
		r.Depth = s.carried.Depth(f.service)
	}
	if !in.Trusted {
		s.carried.Timeout = 0 // those who are called would believe it, since they trust this service
	}
	s.carried = s.carried.AtMost(left)
	s.permit = f.permit(r, s.caller)
	return s
}

// Admit waits for the permit of a request that was prepared.
func (s *Serving) Admit(ctx context.Context) error { return s.permit.acquire(ctx) }

// retryAfter is when a retry of such a request may help, in whole seconds, as ../spec/wire.md has it.
func (s *Serving) retryAfter() string {
	s.fence.mu.Lock()
	drain := time.Duration(s.fence.core.Drain(s.carried.Path))
	s.fence.mu.Unlock()
	const most = time.Minute
	seconds := int((min(max(drain, 1), most) + time.Second - 1) / time.Second)
	return strconv.Itoa(seconds + rand.IntN(seconds+1))
}

// permitOf is the permit of a fence that the request has, or one of this process that waits for it.
func (s *Serving) permitOf(f *Fence) *Permit {
	for ; s != nil; s = s.caller {
		if s.fence == f {
			return s.permit
		}
	}
	return nil
}

// Permit is the request's.
func (s *Serving) Permit() *Permit { return s.permit }

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

// PermitOf is the permit of the request that the context belongs to; nil, whose methods do nothing: none.
func PermitOf(ctx context.Context) *Permit {
	if s := ServingOf(ctx); s != nil {
		return s.permit
	}
	return nil
}

// Headers are those of a call, as http.Header is.
type Headers interface {
	Values(name string) []string
	Set(name, value string)
	Add(name, value string)
	Del(name string)
}

// Outgoing is a call. Clients for which there is no adapter give it to [Calls].
type Outgoing struct {
	// Edge is what is called, as a key.
	Edge string
	// Peer says whether that is a service of one's own, which is sent what travels with the request.
	Peer bool
	// Local says whether it may be this process itself.
	Local bool
}

// Calls notes a call that the context's request makes, if it belongs to one, and writes what is sent with it, and nothing else
// of PathFence's: what a handler copied from its own request does not pass for the service's word. The call is over with end.
func Calls(ctx context.Context, out Outgoing, headers Headers) (end func()) {
	clean(headers)
	s := ServingOf(ctx)
	if s == nil {
		return func() {}
	}
	s.permit.Edge(out.Edge)
	if out.Peer {
		s.carried.Onward(s.fence.service, time.Since(s.since)).Write(headers.Set)
	}
	if !out.Peer && !out.Local {
		return func() {}
	}
	name, end := s.named()
	headers.Set(wire.WithinHeader, name)
	return end
}

// clean takes out what is PathFence's.
func clean(headers Headers) {
	for _, name := range []string{wire.PathHeader, wire.DeadlineHeader, wire.VisitsHeader, wire.WithinHeader} {
		headers.Del(name)
	}
	values := headers.Values("baggage")
	if !slices.ContainsFunc(values, func(v string) bool { return strings.Contains(v, "pf.") }) {
		return
	}
	var kept []string
	for _, v := range values {
		for member := range strings.SplitSeq(v, ",") {
			if !strings.HasPrefix(strings.TrimLeft(member, " \t"), "pf.") {
				kept = append(kept, member)
			}
		}
	}
	headers.Del("baggage")
	if len(kept) > 0 {
		headers.Add("baggage", strings.Join(kept, ","))
	}
}

// PeerAnswered notes how a peer answered a call of the context's request: that it refused, and why, or "".
func PeerAnswered(ctx context.Context, refused string) {
	s := ServingOf(ctx)
	switch {
	case s == nil:
	case wire.IsReason(refused):
		s.below.Store(&refused)
	default:
		s.below.Store(nil)
	}
}

// RefusedBelow is why the peer that answered last refused; "": it did not. A failure because of that is a refusal, too.
func (s *Serving) RefusedBelow() string {
	if reason := s.below.Load(); reason != nil {
		return *reason
	}
	return ""
}
