package pathfencegrpc

import (
	"context"
	"io"
	"net"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	pathfence "temper.dev/temper/pathfence/go"
	"temper.dev/temper/pathfence/go/core"
	"temper.dev/temper/pathfence/go/internal/wire"
)

// ClientOption is how a client differs from the usual one.
type ClientOption func(*client)

// Peers says which targets, as grpc.NewClient was given them, are services of one's own. They are sent the key, the deadline
// and the services that the request was in, and are believed when they say that they refuse. Without it, none is a peer.
func Peers(target func(string) bool) ClientOption {
	return func(c *client) { c.peers = target }
}

// Edges says what a call goes to, as a key. Without it, and where it gives "", that is the target without its scheme.
func Edges(edge func(target, method string) string) ClientOption {
	return func(c *client) { c.edges = edge }
}

type client struct {
	peers func(string) bool
	edges func(target, method string) string
}

// Client gives the interceptors for grpc.NewClient, for calls with the context of the request that they are made for.
func Client(options ...ClientOption) []grpc.DialOption {
	c := &client{}
	for _, set := range options {
		set(c)
	}
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(c.unary), grpc.WithChainStreamInterceptor(c.stream)}
}

func (c *client) unary(ctx context.Context, method string, request, response any, conn *grpc.ClientConn, next grpc.UnaryInvoker, options ...grpc.CallOption) error {
	ctx, peer, end := c.calls(ctx, conn.Target(), method)
	defer end()
	if !peer {
		return next(ctx, method, request, response, conn, options...)
	}
	var trailer metadata.MD
	err := next(ctx, method, request, response, conn, append(slices.Clip(options), grpc.Trailer(&trailer))...)
	answered(ctx, err, trailer)
	return err
}

// answered notes what a peer's answer says.
func answered(ctx context.Context, err error, trailer metadata.MD) {
	refused := ""
	if status.Code(err) == codes.ResourceExhausted {
		refused = value(trailer, wire.ShedHeader)
	}
	pathfence.PeerAnswered(ctx, refused)
}

func (c *client) stream(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, next grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
	ctx, peer, end := c.calls(ctx, conn.Target(), method)
	to, err := next(ctx, desc, conn, method, options...)
	if err != nil {
		end()
		return nil, err
	}
	context.AfterFunc(to.Context(), end)
	if peer {
		to = &clientStream{to}
	}
	return to, nil
}

// clientStream is one to a peer.
type clientStream struct{ grpc.ClientStream }

// RecvMsg implements grpc.ClientStream.
func (s *clientStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if err == nil || err == io.EOF {
		answered(s.Context(), nil, nil)
	} else {
		answered(s.Context(), err, s.Trailer())
	}
	return err
}

// calls notes a call, and gives the context to make it with.
func (c *client) calls(ctx context.Context, target, method string) (to context.Context, peer bool, end func()) {
	peer = c.peers != nil && c.peers(target)
	sent, _ := metadata.FromOutgoingContext(ctx) // a copy
	if sent == nil {
		sent = metadata.MD{}
	}
	end = pathfence.Calls(ctx, pathfence.Outgoing{Edge: c.edge(target, method), Peer: peer, Local: isLocal(target)}, headers{sent})
	return metadata.NewOutgoingContext(ctx, sent), peer, end
}

// headers are metadata as pathfence.Headers.
type headers struct{ metadata.MD }

func (h headers) Values(name string) []string { return h.Get(name) }
func (h headers) Set(name, value string)      { h.MD.Set(name, value) }
func (h headers) Add(name, value string)      { h.Append(name, value) }
func (h headers) Del(name string)             { h.Delete(name) }

func (c *client) edge(target, method string) string {
	if c.edges != nil {
		if edge := c.edges(target, method); edge != "" {
			return edge
		}
	}
	host := address(target)
	if core.ValidName(host) {
		return host
	}
	return strings.Map(func(r rune) rune { // an IPv6 address without its brackets
		if r == '[' || r == ']' {
			return -1
		}
		return r
	}, host)
}

// address is a target's host and port: orders:9000 of dns:///orders:9000, and of dns:orders:9000.
func address(target string) string {
	if i := strings.LastIndexByte(target, '/'); i >= 0 {
		return target[i+1:]
	}
	for _, scheme := range []string{"dns:", "passthrough:", "ipv4:", "ipv6:"} {
		if rest, has := strings.CutPrefix(target, scheme); has {
			return rest
		}
	}
	return target
}

// isLocal says whether a target may be this process itself, by its address.
func isLocal(target string) bool {
	host, _, err := net.SplitHostPort(address(target))
	return err == nil && wire.IsLocal(host)
}
