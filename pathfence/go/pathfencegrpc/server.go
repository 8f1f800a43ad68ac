// Package pathfencegrpc puts a fence before the methods of a gRPC server, and tells it what clients call.
//
//	fence, err := pathfence.New(pathfence.Config{Service: "orders", Workers: 64})
//	...
//	server := grpc.NewServer(pathfencegrpc.Server(fence)...)
//	conn, err := grpc.NewClient(target, pathfencegrpc.Client()...)
package pathfencegrpc

import (
	"context"
	"errors"
	"io"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	pathfence "temper.dev/temper/pathfence/go"
	"temper.dev/temper/pathfence/go/core"
	"temper.dev/temper/pathfence/go/internal/wire"
)

// ServerOption is how a server's fence differs from the usual one.
type ServerOption func(*server)

// Keys says which path a method is of, as a key. Without it, and where it gives "", the method's full name is the key, its last
// 64 characters.
func Keys(key func(ctx context.Context, method string) string) ServerOption {
	return func(s *server) { s.keys = key }
}

// Trusted says which clients may choose keys, depths and long deadlines, by the context of a call. Without it, none may.
func Trusted(client func(ctx context.Context) bool) ServerOption {
	return func(s *server) { s.trusted = client }
}

// Exempt says which methods need no permit, besides those of gRPC's health service.
func Exempt(method func(fullMethod string) bool) ServerOption {
	return func(s *server) { s.exempt = method }
}

type server struct {
	fence   *pathfence.Fence
	keys    func(context.Context, string) string
	trusted func(context.Context) bool
	exempt  func(string) bool
}

// Server gives the interceptors for grpc.NewServer. Those that turn calls away cheaply, such as authentication, come before.
//
// A call of one request and one response has a permit from the first to the last. One with a stream has it while a message is
// worked on: from its receipt until an answer or the headers are sent, or the next message is waited for. So streams that wait
// take nothing from others. For each message it waits for its turn, and may be refused, which ends it. A handler that works before it receives anything does so without.
func Server(fence *pathfence.Fence, options ...ServerOption) []grpc.ServerOption {
	s := &server{fence: fence}
	for _, set := range options {
		set(s)
	}
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(s.unary), grpc.ChainStreamInterceptor(s.stream)}
}

const health = "/grpc.health.v1.Health/"

func (s *server) free(method string) bool {
	return strings.HasPrefix(method, health) || s.exempt != nil && s.exempt(method)
}

// key is the path of a method. One that no service has is not for clients to make up.
func (s *server) key(ctx context.Context, method string, known bool) string {
	if s.keys != nil {
		if key := s.keys(ctx, method); key != "" {
			return key
		}
	}
	if !known {
		return ""
	}
	method = strings.TrimPrefix(method, "/")
	return method[max(0, len(method)-core.MaxName):]
}

func (s *server) prepare(ctx context.Context, method string, known bool) *pathfence.Serving {
	said, _ := metadata.FromIncomingContext(ctx)
	return s.fence.Prepare(ctx, pathfence.Incoming{
		Header:  func(name string) string { return value(said, name) },
		Key:     s.key(ctx, method, known),
		Trusted: s.trusted != nil && s.trusted(ctx),
	})
}

// told is the call's status where it got no permit; nil: it did.
func told(ctx context.Context, err error) error {
	var refused *pathfence.RefusedError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused):
		return refuse(ctx, refused.Reason)
	}
	return status.FromContextError(ctx.Err()).Err()
}

// value is the first value of a header, or all of baggage.
func value(md metadata.MD, name string) string {
	all := md.Get(name)
	switch {
	case len(all) == 0:
		return ""
	case name == "baggage":
		return strings.Join(all, ",")
	}
	return all[0]
}

// refuse is the status of a call that is refused. It says that a retry helps nobody.
func refuse(ctx context.Context, reason string) error {
	_ = grpc.SetTrailer(ctx, metadata.Pairs(wire.ShedHeader, reason, "grpc-retry-pushback-ms", "-1")) // it fails outside of calls only
	return status.Error(codes.ResourceExhausted, "pf-shed: "+reason)
}

func (s *server) unary(ctx context.Context, request any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if s.free(info.FullMethod) {
		return next(ctx, request)
	}
	serving := s.prepare(ctx, info.FullMethod, true)
	if err := told(ctx, serving.Admit(ctx)); err != nil {
		return nil, err
	}
	defer serving.Permit().Release(pathfence.Fail) // where it panics
	response, err := next(serving.In(ctx), request)
	serving.Permit().Release(outcome(ctx, err))
	return response, passedOn(ctx, serving, err)
}

// passedOn is a call's error: where it failed because a peer refused, it is refused, too.
func passedOn(ctx context.Context, serving *pathfence.Serving, err error) error {
	if reason := serving.RefusedBelow(); err != nil && reason != "" && outcome(ctx, err) == pathfence.Fail {
		return refuse(ctx, reason)
	}
	return err
}

// outcome is what a call's error says. What the client got wrong was found out at once.
func outcome(ctx context.Context, err error) pathfence.Outcome {
	if errors.Is(ctx.Err(), context.Canceled) {
		return pathfence.Cancel
	}
	code := status.Code(err)
	if err != nil && code == codes.Unknown {
		code = status.FromContextError(err).Code()
	}
	switch code {
	case codes.OK:
		return pathfence.OK
	case codes.Canceled, codes.Unknown, codes.DeadlineExceeded, codes.ResourceExhausted, codes.Aborted, codes.Internal, codes.Unavailable, codes.DataLoss:
		return pathfence.Fail
	}
	return pathfence.Light
}

func (s *server) stream(srv any, to grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if s.free(info.FullMethod) {
		return next(srv, to)
	}
	// Without a service the method is whatever a client has made up.
	serving := s.prepare(to.Context(), info.FullMethod, srv != nil)
	serves := &stream{ServerStream: to, ctx: serving.In(to.Context()), serving: serving}
	defer serving.Permit().Release(pathfence.Fail) // where it panics
	err := next(srv, serves)
	if serves.refused != nil {
		return serves.refused
	}
	ended := outcome(to.Context(), err)
	if ended == pathfence.Fail { // that counts, also after an answer
		serving.Permit().Working()
	}
	serving.Permit().Release(ended)
	return passedOn(to.Context(), serving, err)
}

// stream has a permit while a message is worked on.
type stream struct {
	grpc.ServerStream
	ctx     context.Context
	serving *pathfence.Serving
	begun   bool  // its first message was received
	refused error // it got no permit
}

// Context implements grpc.ServerStream.
func (s *stream) Context() context.Context { return s.ctx }

// RecvMsg implements grpc.ServerStream. At the end of the client's stream there is work to do, too.
func (s *stream) RecvMsg(m any) error {
	if s.refused != nil {
		return s.refused
	}
	if s.begun {
		s.serving.Permit().Idle()
	}
	err := s.ServerStream.RecvMsg(m)
	switch {
	case err != nil && err != io.EOF:
	case s.begun:
		s.refused = told(s.ctx, s.serving.Permit().Ask(s.ctx))
	default:
		s.begun = true
		s.refused = told(s.ctx, s.serving.Admit(s.ctx))
	}
	if s.refused != nil {
		return s.refused
	}
	return err
}

// SendHeader implements grpc.ServerStream.
func (s *stream) SendHeader(md metadata.MD) error {
	s.serving.Permit().Answered()
	return s.ServerStream.SendHeader(md)
}

// SendMsg implements grpc.ServerStream.
func (s *stream) SendMsg(m any) error {
	s.serving.Permit().Answered()
	return s.ServerStream.SendMsg(m)
}
