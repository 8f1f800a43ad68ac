package pathfence

import (
	"net/http"

	"temper.dev/temper/pathfence/go/core"
	"temper.dev/temper/pathfence/go/internal/wire"
)

// TransportOption is how a transport differs from the usual one.
type TransportOption func(*transport)

// Peers says which hosts (HOST or HOST:PORT, as the URL has it) are services of one's own, with or without PathFence. They are
// sent the key, the deadline and the services that the request was in, and are believed when they say that they refuse. All
// others are sent nothing. Without it, none is a peer.
func Peers(host func(string) bool) TransportOption {
	return func(t *transport) { t.peers = host }
}

// Edges says what a call goes to, as a key. Without it, and where it gives "", that is the host.
func Edges(edge func(*http.Request) string) TransportOption {
	return func(t *transport) { t.edges = edge }
}

type transport struct {
	base  http.RoundTripper
	peers func(string) bool
	edges func(*http.Request) string
}

// Transport is for clients that handlers use, with the context of the request that they serve: it says which edges requests
// use. Calls of a request to this process itself, at a loopback address or as a peer, run on its own permit. nil is
// http.DefaultTransport.
func Transport(base http.RoundTripper, options ...TransportOption) http.RoundTripper {
	if base == nil {
		base = http.DefaultTransport
	}
	t := &transport{base: base}
	for _, set := range options {
		set(t)
	}
	return t
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	peer := t.peers != nil && t.peers(r.URL.Host)
	r = r.Clone(r.Context()) // a RoundTripper may not change the request
	if r.Header == nil {
		r.Header = http.Header{}
	}
	end := Calls(r.Context(), Outgoing{Edge: t.edge(r), Peer: peer, Local: wire.IsLocal(r.URL.Hostname())}, r.Header)
	defer end()
	response, err := t.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	reason := response.Header.Get(wire.ShedHeader)
	if !peer {
		response.Header.Del(wire.ShedHeader) // or a proxy would pass it on as this service's
		return response, nil
	}
	if response.StatusCode < 500 {
		reason = ""
	}
	PeerAnswered(r.Context(), reason)
	return response, nil
}

func (t *transport) edge(r *http.Request) string {
	if t.edges != nil {
		if edge := t.edges(r); edge != "" {
			return edge
		}
	}
	if core.ValidName(r.URL.Host) {
		return r.URL.Host
	}
	return r.URL.Hostname() // an IPv6 address without its brackets
}
