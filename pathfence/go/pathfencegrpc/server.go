// Package pathfencegrpc puts a fence before the methods of a gRPC server, and tells it what clients call.
//
//	fence, err := pathfence.New(pathfence.Config{Service: "orders", Workers: 64})
//	...
//	server := grpc.NewServer(pathfencegrpc.Server(fence)...)
//	conn, err := grpc.NewClient(target, pathfencegrpc.Client(fence)...)
package pathfencegrpc

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	pathfence "temper.dev/temper/pathfence/go"
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
// worked on: from its receipt, of the first from the start, until a message is sent, or the next one is waited for. So streams
// that wait take nothing from others.
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

// key is the path of a method.
func (s *server) key(ctx context.Context, method string) string {
	if s.keys != nil {
		if key := s.keys(ctx, method); key != "" {
			return key
		}
	}
	method = strings.TrimPrefix(method, "/")
	return method[max(0, len(method)-longestKey):]
}

const longestKey = 64

// admit waits for a permit. The error is the call's status.
func (s *server) admit(ctx context.Context, method string) (*pathfence.Serving, error) {
	said, _ := metadata.FromIncomingContext(ctx)
	serving, err := s.fence.Admit(ctx, pathfence.Incoming{
		Header:  func(name string) string { return value(said, name) },
		Key:     s.key(ctx, method),
		Trusted: s.trusted != nil && s.trusted(ctx),
	})
	var refused *pathfence.RefusedError
	switch {
	case err == nil:
		return serving, nil
	case errors.As(err, &refused):
		return nil, refuse(ctx, refused.Reason)
	}
	return nil, status.FromContextError(err).Err()
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
	serving, err := s.admit(ctx, info.FullMethod)
	if err != nil {
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
	case codes.Canceled:
		return pathfence.Cancel
	case codes.Unknown, codes.DeadlineExceeded, codes.ResourceExhausted, codes.Aborted, codes.Internal, codes.Unavailable, codes.DataLoss:
		return pathfence.Fail
	}
	return pathfence.Light
}

func (s *server) stream(srv any, to grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if s.free(info.FullMethod) {
		return next(srv, to)
	}
	serving, err := s.admit(to.Context(), info.FullMethod)
	if err != nil {
		return err
	}
	defer serving.Permit().Release(pathfence.Fail)
	err = next(srv, &stream{ServerStream: to, ctx: serving.In(to.Context()), permit: serving.Permit()})
	serving.Permit().Release(outcome(to.Context(), err))
	return passedOn(to.Context(), serving, err)
}

// stream has a permit while a message is worked on.
type stream struct {
	grpc.ServerStream
	ctx    context.Context
	permit *pathfence.Permit
	begun  bool // its first message was asked for
}

// Context implements grpc.ServerStream.
func (s *stream) Context() context.Context { return s.ctx }

// RecvMsg implements grpc.ServerStream.
func (s *stream) RecvMsg(m any) error {
	if s.begun {
		s.permit.Pause()
	}
	s.begun = true
	err := s.ServerStream.RecvMsg(m)
	if err == nil {
		s.permit.Resume()
	}
	return err
}

// SendMsg implements grpc.ServerStream.
func (s *stream) SendMsg(m any) error {
	s.permit.Answered()
	return s.ServerStream.SendMsg(m)
}
