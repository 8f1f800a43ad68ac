package pathfencegrpc_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
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
	plain  testpb.TestServiceClient // without interceptors

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
	plain, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	s.plain = testpb.NewTestServiceClient(plain)
	t.Cleanup(func() {
		close(s.gate)
		s.conn.Close()
		plain.Close()
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

// Each message waits for its turn, not only the first one.
func TestBusyStreamsLeaveWorkersToOthers(t *testing.T) {
	const streams = 20
	config := pathfence.Config{Workers: 4, Target: time.Minute, Classes: []pathfence.Class{
		{Name: "streams", Keys: []string{"grpc.testing.TestService/FullDuplexCall"}}, {Name: "fast", Keys: []string{empty}},
	}}
	s := serve(t, config, nil)
	s.duplex = func(stream grpc.BidiStreamingServer[testpb.StreamingOutputCallRequest, testpb.StreamingOutputCallResponse]) error {
		for first := true; ; first = false {
			if _, err := stream.Recv(); err != nil {
				return err
			}
			if first {
				if err := stream.Send(&testpb.StreamingOutputCallResponse{}); err != nil {
					return err
				}
				continue
			}
			s.wait(stream.Context())
		}
	}
	s.answers()
	var clients []testpb.TestService_FullDuplexCallClient
	for range streams {
		client, err := s.client.FullDuplexCall(t.Context())
		if err == nil {
			err = client.Send(&testpb.StreamingOutputCallRequest{})
		}
		if err == nil {
			_, err = client.Recv()
		}
		if err != nil {
			t.Fatal(err)
		}
		clients = append(clients, client)
	}
	for _, client := range clients {
		if err := client.Send(&testpb.StreamingOutputCallRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	s.awaits("all have a second message", func(now pathfence.State) bool { return now.InFlight+now.Waiting == streams })
	if now := s.fence.State(); now.InFlight > 3 {
		t.Errorf("%d of 4 are in flight, want 3 at most", now.InFlight)
	}
	for range streams {
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
		{"for something to send, after the headers", func(s *service) error {
			stream, err := s.client.FullDuplexCall(s.t.Context())
			if err == nil {
				err = stream.Send(&testpb.StreamingOutputCallRequest{ResponseType: testpb.PayloadType_COMPRESSABLE, ResponseParameters: []*testpb.ResponseParameters{{}}})
			}
			if err == nil {
				_, err = stream.Header()
			}
			return err
		}},
		{"for the first message", func(s *service) error {
			_, err := s.client.FullDuplexCall(s.t.Context())
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
					asked, err := stream.Recv()
					if err != nil {
						return nil
					}
					if len(asked.ResponseParameters) > 0 {
						stream.SendHeader(metadata.MD{})
						s.wait(stream.Context())
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
			for _, class := range s.fence.State().Classes {
				if class.Failed > 0 {
					t.Errorf("of class %s, %d count as failed", class.Name, class.Failed)
				}
			}
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
			_, err := s.plain.EmptyCall(metadata.AppendToOutgoingContext(t.Context(), c.sent...), &testpb.Empty{}, grpc.Trailer(&trailer))
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

// With one worker a method calls its own service.
func TestCallsOfAMethod(t *testing.T) {
	isPeer := pathfencegrpc.Peers(func(string) bool { return true })
	trusts := pathfencegrpc.Trusted(func(context.Context) bool { return true })
	for _, c := range []struct {
		name   string
		server []pathfencegrpc.ServerOption
		client []pathfencegrpc.ClientOption
	}{
		{"at a loopback address", nil, nil},
		{"as a peer", nil, []pathfencegrpc.ClientOption{isPeer}},
		{"as a peer that is trusted", []pathfencegrpc.ServerOption{trusts}, []pathfencegrpc.ClientOption{isPeer}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, one, c.server, c.client...)
			s.unary = func(ctx context.Context, _ *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
				_, err := s.client.EmptyCall(ctx, &testpb.Empty{})
				return &testpb.SimpleResponse{}, err
			}
			if _, err := s.client.UnaryCall(t.Context(), &testpb.SimpleRequest{}); err != nil {
				t.Errorf("it gives %v, want an answer", err)
			}
		})
	}
}

// A peer's refusal becomes the call's own, and nobody else's.
func TestARefusalBelowIsPassedOn(t *testing.T) {
	unaryCall := func(ctx context.Context, to testpb.TestServiceClient) error {
		_, err := to.EmptyCall(ctx, &testpb.Empty{})
		return err
	}
	streamCall := func(ctx context.Context, to testpb.TestServiceClient) error {
		stream, err := to.StreamingOutputCall(ctx, &testpb.StreamingOutputCallRequest{})
		if err == nil {
			_, err = stream.Recv()
		}
		return err
	}
	for _, c := range []struct {
		name  string
		call  func(context.Context, testpb.TestServiceClient) error
		peers bool
		want  string
	}{
		{"a peer's", unaryCall, true, "closed"},
		{"a peer's, of a stream", streamCall, true, "closed"},
		{"another's", unaryCall, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			below := serve(t, one, nil, pathfencegrpc.Peers(func(string) bool { return c.peers }))
			below.fence.Close()
			s := serve(t, one, nil)
			s.unary = func(ctx context.Context, _ *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
				return nil, c.call(ctx, below.client)
			}
			var trailer metadata.MD
			_, err := s.client.UnaryCall(t.Context(), &testpb.SimpleRequest{}, grpc.Trailer(&trailer))
			got := strings.Join(trailer.Get("x-pf-shed"), " ")
			if status.Code(err) != codes.ResourceExhausted || got != c.want {
				t.Errorf("it gives %v, x-pf-shed %q; want ResourceExhausted, %q", err, got, c.want)
			}
		})
	}
}

// What a gateway passes on of its client's metadata is not taken for its own word, and not sent to others.
func TestForgedMetadataIsNotPassedOn(t *testing.T) {
	for _, c := range []struct {
		name string
		peer bool
		want string
	}{
		{"to a peer", true, "[grpc.testing.TestService/UnaryCall] [gateway*1] [a=b]"},
		{"to another", false, "[] [] [a=b]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := make(chan string, 1)
			below := serve(t, one, nil, pathfencegrpc.Peers(func(string) bool { return c.peer }))
			below.unary = func(ctx context.Context, _ *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
				md, _ := metadata.FromIncomingContext(ctx)
				got <- fmt.Sprint(md.Get("x-pf-path"), md.Get("x-pf-visits"), md.Get("baggage"))
				return &testpb.SimpleResponse{}, nil
			}
			gateway := serve(t, pathfence.Config{Service: "gateway", Workers: 1, Target: time.Minute}, nil)
			gateway.unary = func(ctx context.Context, r *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
				came, _ := metadata.FromIncomingContext(ctx)
				return below.client.UnaryCall(metadata.NewOutgoingContext(ctx, came.Copy()), r)
			}
			forged := metadata.AppendToOutgoingContext(t.Context(), "x-pf-path", "forged", "x-pf-visits", "below*1", "baggage", "a=b,pf.visits=below%2A1")
			if _, err := gateway.plain.UnaryCall(forged, &testpb.SimpleRequest{}); err != nil {
				t.Fatal(err)
			}
			if got := <-got; got != c.want {
				t.Errorf("it is sent %s, want %s", got, c.want)
			}
		})
	}
}

// Options are the caller's, who may use them for several calls at once: found by the race detector.
func TestOptionsStayTheCallers(t *testing.T) {
	s := serve(t, pathfence.Config{Workers: 8, Target: time.Minute}, nil, pathfencegrpc.Peers(func(string) bool { return true }))
	options := append(make([]grpc.CallOption, 0, 4), grpc.WaitForReady(true))
	s.unary = func(ctx context.Context, _ *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
		var all sync.WaitGroup
		for range 8 {
			all.Add(1)
			go func() {
				defer all.Done()
				if err := s.conn.Invoke(ctx, "/"+empty, &testpb.Empty{}, &testpb.Empty{}, options...); err != nil {
					t.Error(err)
				}
			}()
		}
		all.Wait()
		return &testpb.SimpleResponse{}, nil
	}
	if _, err := s.client.UnaryCall(t.Context(), &testpb.SimpleRequest{}); err != nil {
		t.Error(err)
	}
}

// What a method does once its client has sent all has a permit, and counts.
func TestWorkAfterTheLastMessage(t *testing.T) {
	s := serve(t, pathfence.Config{Workers: 1, Target: time.Minute, Classes: []pathfence.Class{{Name: "it", Keys: []string{"grpc.testing.TestService/FullDuplexCall"}}}}, nil)
	held := int64(0)
	s.duplex = func(stream grpc.BidiStreamingServer[testpb.StreamingOutputCallRequest, testpb.StreamingOutputCallResponse]) error {
		for {
			if _, err := stream.Recv(); err != nil {
				held = s.fence.State().InFlight
				return status.Error(codes.Unavailable, "the store is down")
			}
		}
	}
	stream, err := s.client.FullDuplexCall(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	stream.Send(&testpb.StreamingOutputCallRequest{})
	stream.CloseSend()
	if _, err := stream.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("it gives %v, want Unavailable", err)
	}
	s.awaits("its permit is back", func(now pathfence.State) bool { return now.InFlight == 0 })
	if failed := s.fence.State().Classes[0].Failed; held != 1 || failed != 1 {
		t.Errorf("it works with %d permits, and %d count as failed; want 1 and 1", held, failed)
	}
}

// Clients cannot make up keys, of which a fence learns so many and no more.
func TestMethodsThatNobodyHasShareABucket(t *testing.T) {
	fence, err := pathfence.New(one)
	if err != nil {
		t.Fatal(err)
	}
	defer fence.Close()
	listener, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	options := append(pathfencegrpc.Server(fence), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		return stream.RecvMsg(&testpb.Empty{})
	}))
	to := grpc.NewServer(options...)
	go to.Serve(listener)
	defer to.Stop()
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for i := range 20 {
		conn.Invoke(t.Context(), fmt.Sprintf("/made.up/Method%d", i), &testpb.Empty{}, &testpb.Empty{})
	}
	for _, c := range fence.State().Classes {
		if c.Name != "~u0" {
			t.Errorf("there is a class %s with %d requests, want all in ~u0", c.Name, c.Granted)
		}
	}
}

// A stream that has been answered and ends does not make its path look quick.
func TestTheEndOfAStreamTeachesNothing(t *testing.T) {
	s := serve(t, pathfence.Config{Workers: 1, Target: time.Minute, Classes: []pathfence.Class{{Name: "it", Keys: []string{"grpc.testing.TestService/FullDuplexCall"}}}}, nil)
	const works = 20 * time.Millisecond
	s.duplex = func(stream grpc.BidiStreamingServer[testpb.StreamingOutputCallRequest, testpb.StreamingOutputCallResponse]) error {
		if _, err := stream.Recv(); err != nil {
			return err
		}
		<-time.After(works)
		return stream.Send(&testpb.StreamingOutputCallResponse{})
	}
	for range 5 {
		stream, err := s.client.FullDuplexCall(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		stream.Send(&testpb.StreamingOutputCallRequest{})
		for err == nil {
			_, err = stream.Recv()
		}
	}
	s.awaits("all permits are back", func(now pathfence.State) bool { return now.InFlight == 0 })
	if it := s.fence.State().Classes[0]; it.Granted != 5 || it.Hold < int64(works) {
		t.Errorf("%d were granted, and one takes %v; want 5, and %v at least", it.Granted, time.Duration(it.Hold), works)
	}
}
