package pathfencegrpc

import (
	"context"
	"net"
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
	serving := pathfence.ServingOf(ctx)
	if serving == nil {
		return next(ctx, method, request, response, conn, options...)
	}
	ctx, peer := c.calls(ctx, serving, conn.Target(), method)
	if !peer {
		return next(ctx, method, request, response, conn, options...)
	}
	var trailer metadata.MD
	err := next(ctx, method, request, response, conn, append(options, grpc.Trailer(&trailer))...)
	if reason := value(trailer, wire.ShedHeader); reason != "" && status.Code(err) == codes.ResourceExhausted {
		serving.Refused(reason)
	}
	return err
}

func (c *client) stream(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, next grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
	if serving := pathfence.ServingOf(ctx); serving != nil {
		ctx, _ = c.calls(ctx, serving, conn.Target(), method)
	}
	return next(ctx, desc, conn, method, options...)
}

// calls notes a call, and gives the context to make it with.
func (c *client) calls(ctx context.Context, serving *pathfence.Serving, target, method string) (to context.Context, peer bool) {
	peer = c.peers != nil && c.peers(target)
	serving.Calls(pathfence.Outgoing{Edge: c.edge(target, method), Peer: peer, Local: loopback(target)}, func(name, value string) {
		ctx = metadata.AppendToOutgoingContext(ctx, name, value)
	})
	return ctx, peer
}

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

// address is a target's host and port: orders:9000 of dns:///orders:9000.
func address(target string) string {
	return target[strings.LastIndexByte(target, '/')+1:]
}

func loopback(target string) bool {
	host, _, err := net.SplitHostPort(address(target))
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
