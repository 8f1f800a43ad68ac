package pathfencegrpc_test

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	pathfence "temper.dev/temper/pathfence/go"
	"temper.dev/temper/pathfence/go/internal/fencetest"
	"temper.dev/temper/pathfence/go/pathfencegrpc"
)

// service is gRPC's own test service, behind a fence.
type service struct {
	testpb.UnimplementedTestServiceServer
	t      *testing.T
	fence  *pathfence.Fence
	conn   *grpc.ClientConn
	client testpb.TestServiceClient

	unary  func(context.Context, *testpb.SimpleRequest) (*testpb.SimpleResponse, error)
	duplex func(grpc.BidiStreamingServer[testpb.StreamingOutputCallRequest, testpb.StreamingOutputCallResponse]) error
	gate   chan struct{} // what EmptyCall's siblings wait for; closed at the end
}

func (s *service) EmptyCall(context.Context, *testpb.Empty) (*testpb.Empty, error) {
	return &testpb.Empty{}, nil
}

func (s *service) UnaryCall(ctx context.Context, r *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
	return s.unary(ctx, r)
}

func (s *service) FullDuplexCall(stream grpc.BidiStreamingServer[testpb.StreamingOutputCallRequest, testpb.StreamingOutputCallResponse]) error {
	return s.duplex(stream)
}

// StreamingOutputCall sends one message, and waits for the gate.
func (s *service) StreamingOutputCall(_ *testpb.StreamingOutputCallRequest, stream grpc.ServerStreamingServer[testpb.StreamingOutputCallResponse]) error {
	if err := stream.Send(&testpb.StreamingOutputCallResponse{}); err != nil {
		return err
	}
	s.wait(stream.Context())
	return nil
}

func (s *service) wait(ctx context.Context) {
	select {
	case <-s.gate:
	case <-ctx.Done():
	}
}

const (
	empty = "grpc.testing.TestService/EmptyCall"
	unary = "grpc.testing.TestService/UnaryCall"
)

func serve(t *testing.T, config pathfence.Config, server []pathfencegrpc.ServerOption, client ...pathfencegrpc.ClientOption) *service {
	fence, err := pathfence.New(config)
	if err != nil {
		t.Fatal(err)
	}
	s := &service{t: t, fence: fence, gate: make(chan struct{})}
	s.unary = func(ctx context.Context, _ *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
		s.wait(ctx)
		return &testpb.SimpleResponse{}, nil
	}
	listener, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	to := grpc.NewServer(pathfencegrpc.Server(fence, server...)...)
	testpb.RegisterTestServiceServer(to, s)
	healthpb.RegisterHealthServer(to, health.NewServer())
	go to.Serve(listener)
	options := append(pathfencegrpc.Client(client...), grpc.WithTransportCredentials(insecure.NewCredentials()))
	s.conn, err = grpc.NewClient(listener.Addr().String(), options...)
	if err != nil {
		t.Fatal(err)
	}
	s.client = testpb.NewTestServiceClient(s.conn)
	t.Cleanup(func() {
		close(s.gate)
		s.conn.Close()
		to.Stop()
		s.awaits("all permits are back", func(now pathfence.State) bool { return now.InFlight == 0 && now.Waiting == 0 })
		fence.Close()
	})
	return s
}

func (s *service) awaits(what string, holds func(pathfence.State) bool) {
	s.t.Helper()
	fencetest.Awaits(s.t, s.fence, what, holds)
}

// begin makes so many calls that are not answered yet, and waits until they are in the service.
func (s *service) begin(n int) {
	s.t.Helper()
	for range n {
		go s.client.UnaryCall(s.t.Context(), &testpb.SimpleRequest{})
	}
	s.awaits("they are in the service", func(now pathfence.State) bool { return now.InFlight+now.Waiting == int64(n) })
}

func (s *service) answers() {
	s.t.Helper()
	if _, err := s.client.EmptyCall(s.t.Context(), &testpb.Empty{}); err != nil {
		s.t.Errorf("a call gives %v, want an answer", err)
	}
}

var one = pathfence.Config{Service: "shop", Workers: 1, Target: time.Minute}

func TestASlowMethodLeavesWorkersToOthers(t *testing.T) {
	config := pathfence.Config{Workers: 4, Target: time.Minute, Classes: []pathfence.Class{{Name: "slow", Keys: []string{unary}}, {Name: "fast", Keys: []string{empty}}}}
	s := serve(t, config, nil)
	s.answers()
	s.begin(20)
	for range 20 {
		s.answers()
	}
}

func TestHealthIsAnsweredWhateverElseIs(t *testing.T) {
	s := serve(t, one, nil)
	s.begin(2)
	if _, err := healthpb.NewHealthClient(s.conn).Check(t.Context(), &healthpb.HealthCheckRequest{}); err != nil {
		t.Errorf("health gives %v", err)
	}
}

// Streams that wait hold no worker: with one, fifty are open, and calls are answered.
func TestStreamsThatWait(t *testing.T) {
	const clients = 50
	for _, c := range []struct {
		name string
		open func(*service) error
	}{
		{"for something to send", func(s *service) error {
			stream, err := s.client.StreamingOutputCall(s.t.Context(), &testpb.StreamingOutputCallRequest{})
			if err == nil {
				_, err = stream.Recv()
			}
			return err
		}},
		{"for what the client sends next", func(s *service) error {
			stream, err := s.client.FullDuplexCall(s.t.Context())
			if err == nil {
				err = stream.Send(&testpb.StreamingOutputCallRequest{})
			}
			if err == nil {
				_, err = stream.Recv()
			}
			return err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, one, nil)
			s.duplex = func(stream grpc.BidiStreamingServer[testpb.StreamingOutputCallRequest, testpb.StreamingOutputCallResponse]) error {
				for {
					if _, err := stream.Recv(); err != nil {
						return nil
					}
					if held := s.fence.State().InFlight; held < 1 {
						t.Errorf("a message is worked on with %d permits out", held)
					}
					if err := stream.Send(&testpb.StreamingOutputCallResponse{}); err != nil {
						return err
					}
				}
			}
			for range clients {
				if err := c.open(s); err != nil {
					t.Fatalf("a stream gives %v", err)
				}
			}
			s.answers()
		})
	}
}

func TestRefusals(t *testing.T) {
	trusts := pathfencegrpc.Trusted(func(ctx context.Context) bool {
		md, _ := metadata.FromIncomingContext(ctx)
		return len(md.Get("peer")) > 0
	})
	s := serve(t, one, []pathfencegrpc.ServerOption{trusts})
	s.begin(1)
	for _, c := range []struct {
		name   string
		sent   []string
		reason string
	}{
		{"its time is over", []string{"x-pf-deadline", "1"}, "expired"},
		{"a chain that was here nine times", []string{"peer", "yes", "x-pf-visits", "shop*9"}, "depth"},
		{"a client without trust is believed no depth", []string{"x-pf-visits", "shop*9", "x-pf-deadline", "1"}, "expired"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var trailer metadata.MD
			_, err := s.client.EmptyCall(metadata.AppendToOutgoingContext(t.Context(), c.sent...), &testpb.Empty{}, grpc.Trailer(&trailer))
			if status.Code(err) != codes.ResourceExhausted || status.Convert(err).Message() != "pf-shed: "+c.reason {
				t.Errorf("it gives %v, want ResourceExhausted, pf-shed: %s", err, c.reason)
			}
			if got := trailer.Get("x-pf-shed"); len(got) != 1 || got[0] != c.reason {
				t.Errorf("x-pf-shed is %v, want %s", got, c.reason)
			}
			if got := trailer.Get("grpc-retry-pushback-ms"); len(got) != 1 || got[0] != "-1" {
				t.Errorf("grpc-retry-pushback-ms is %v, want -1", got)
			}
		})
	}
}

// However a method ends, its permit comes back, and counts as what it was.
func TestOutcomes(t *testing.T) {
	for _, c := range []struct {
		name   string
		err    error
		failed int64
	}{
		{"success", nil, 0},
		{"not found", status.Error(codes.NotFound, ""), 0},
		{"not allowed", status.Error(codes.PermissionDenied, ""), 0},
		{"unavailable", status.Error(codes.Unavailable, ""), 1},
		{"an error without a code", io.ErrUnexpectedEOF, 1},
		{"what it called took too long", context.DeadlineExceeded, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, pathfence.Config{Workers: 1, Classes: []pathfence.Class{{Name: "it", Keys: []string{unary}}}}, nil)
			s.unary = func(context.Context, *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
				return &testpb.SimpleResponse{}, c.err
			}
			s.client.UnaryCall(t.Context(), &testpb.SimpleRequest{})
			s.awaits("its permit is back", func(now pathfence.State) bool { return now.InFlight == 0 && now.Classes[0].Granted == 1 })
			if got := s.fence.State().Classes[0].Failed; got != c.failed {
				t.Errorf("failed are %d, want %d", got, c.failed)
			}
		})
	}
}

// With one worker a method calls its own service, and a peer's refusal becomes its own.
func TestCallsOfAMethod(t *testing.T) {
	isPeer := pathfencegrpc.Peers(func(string) bool { return true })
	for _, c := range []struct {
		name   string
		client []pathfencegrpc.ClientOption
		sent   []string
		reason string
	}{
		{"to itself at a loopback address", nil, nil, ""},
		{"to itself as a peer", []pathfencegrpc.ClientOption{isPeer}, nil, ""},
		{"that a peer refuses", []pathfencegrpc.ClientOption{isPeer}, []string{"x-pf-visits", "shop*9"}, "depth"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, one, []pathfencegrpc.ServerOption{pathfencegrpc.Trusted(func(ctx context.Context) bool {
				md, _ := metadata.FromIncomingContext(ctx)
				return len(md.Get("x-pf-within")) > 0
			})}, c.client...)
			s.unary = func(ctx context.Context, _ *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
				_, err := s.client.EmptyCall(metadata.AppendToOutgoingContext(ctx, c.sent...), &testpb.Empty{})
				return &testpb.SimpleResponse{}, err
			}
			var trailer metadata.MD
			_, err := s.client.UnaryCall(t.Context(), &testpb.SimpleRequest{}, grpc.Trailer(&trailer))
			got := trailer.Get("x-pf-shed")
			if (err == nil) != (c.reason == "") || c.reason != "" && (len(got) != 1 || got[0] != c.reason) {
				t.Errorf("it gives %v, x-pf-shed %v; want %q", err, got, c.reason)
			}
		})
	}
}
