package load

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/thrift/lib/go/thrift"
)

// service answers as the method's name says, and passes on what it was asked to do.
type service struct {
	thrift.TProcessor
	work chan int64
	said chan string // what stood in front of the method's name, if anything did
}

func (s service) Process(ctx context.Context, in, out thrift.TProtocol) (bool, thrift.TException) {
	name, _, sequence, err := in.ReadMessageBegin(ctx)
	if err != nil {
		return false, thrift.WrapTException(err)
	}
	if err := s.readWork(ctx, in); err != nil {
		return false, thrift.WrapTException(err)
	}
	if i := strings.LastIndex(name, "!") + 1; i > 0 {
		s.said <- name[:i]
		name = name[i:]
	}
	kind, answer := thrift.REPLY, thrift.TStruct(result{})
	switch name {
	case "refused":
		kind, answer = thrift.EXCEPTION, thrift.NewTApplicationException(thrift.INTERNAL_ERROR, "pf-shed: late")
	case "failed":
		kind, answer = thrift.EXCEPTION, thrift.NewTApplicationException(thrift.INTERNAL_ERROR, "the downstream is gone")
	case "closed":
		return false, thrift.WrapTException(errors.New("no answer"))
	}
	err = errors.Join(out.WriteMessageBegin(ctx, name, kind, sequence), answer.Write(ctx, out), out.WriteMessageEnd(ctx), out.Flush(ctx))
	return err == nil, thrift.WrapTException(err)
}

func (s service) readWork(ctx context.Context, in thrift.TProtocol) error {
	_, err := in.ReadStructBegin(ctx)
	if err != nil {
		return err
	}
	if _, kind, id, err := in.ReadFieldBegin(ctx); err != nil || kind != thrift.I64 || id != 1 {
		return errors.Join(err, errors.New("the first argument is no 1: i64"))
	}
	work, err := in.ReadI64(ctx)
	if err != nil {
		return err
	}
	s.work <- work
	return errors.Join(in.ReadFieldEnd(ctx), in.Skip(ctx, thrift.STRUCT), in.ReadMessageEnd(ctx))
}

// serve runs the service on a port of the kernel's choice, and counts its connections.
func serve(t *testing.T) (s service, port int, accepted func() int) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s = service{work: make(chan int64, 16), said: make(chan string, 16)}
	connections := make(chan struct{}, 16)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			connections <- struct{}{}
			go func() {
				defer conn.Close()
				framed := thrift.NewTFramedTransportConf(thrift.NewStreamTransportRW(conn), nil)
				protocol := thrift.NewTBinaryProtocolConf(framed, nil)
				for {
					if more, _ := s.Process(context.Background(), protocol, protocol); !more { // what went wrong shows as no answer
						return
					}
				}
			}()
		}
	}()
	t.Cleanup(func() { listener.Close() })
	return s, listener.Addr().(*net.TCPAddr).Port, func() int { return len(connections) }
}

func TestThriftAnswers(t *testing.T) {
	s, port, accepted := serve(t)
	client := NewThrift(map[string]int{"fine": port, "refused": port, "failed": port, "closed": port})
	defer client.Close()
	ask := func(path string) error { return client.Ask(path, 1500*time.Microsecond, time.Now().Add(time.Hour)) }
	for range 3 {
		if err := ask("fine"); err != nil {
			t.Fatal(err)
		}
		if work := <-s.work; work != 1500 {
			t.Errorf("asked for %d us of work, not 1500", work)
		}
	}
	if err := ask("refused"); !errors.Is(err, ErrRefused) {
		t.Errorf("a refusal is %v", err)
	}
	if err := ask("failed"); err == nil || errors.Is(err, ErrRefused) {
		t.Errorf("a failure is %v", err)
	}
	if n := accepted(); n != 1 {
		t.Errorf("%d connections for one request at a time", n)
	}
	if err := ask("closed"); err == nil || errors.Is(err, ErrRefused) {
		t.Errorf("a connection that was closed is %v", err)
	}
	if err := ask("fine"); err != nil || accepted() != 2 {
		t.Errorf("after a closed connection: %v, %d connections", err, accepted())
	}
	if err := client.Ask("unknown", 0, time.Now().Add(time.Hour)); err == nil {
		t.Error("a path without a port is no error")
	}
}

// Fences are told how long the client wants to wait, and answer with the plain name; others are told nothing.
func TestThriftStates(t *testing.T) {
	s, port, _ := serve(t)
	ports := map[string]int{"fine": port}
	for _, client := range []*Thrift{NewThrift(ports), NewThriftStating(ports, 250*time.Millisecond)} {
		defer client.Close()
		if err := client.Ask("fine", 0, time.Now().Add(time.Hour)); err != nil {
			t.Error(err)
		}
	}
	close(s.said)
	var said []string
	for prefix := range s.said {
		said = append(said, prefix)
	}
	if !slices.Equal(said, []string{"pf!!250!!"}) {
		t.Errorf("it said %q", said)
	}
}

func TestThriftGivesUp(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") // never answers
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	client := NewThrift(map[string]int{"a": listener.Addr().(*net.TCPAddr).Port})
	var timeout net.Error
	if err := client.Ask("a", 0, time.Now().Add(10*time.Millisecond)); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("it ended with %v", err)
	}
}

// However many take connections and give them back at a time, none is two requests' at once.
func TestOneRequestAConnection(t *testing.T) {
	const requests, rounds, port = 8, 200_000, 1
	client := NewThrift(nil)
	used := map[*connection]*atomic.Bool{}
	for range requests {
		c := &connection{}
		used[c] = new(atomic.Bool)
		client.give(port, c)
	}
	var under sync.WaitGroup
	for range requests {
		under.Go(func() {
			for range rounds {
				c := client.spare(port)
				if c == nil {
					t.Error("fewer connections are spare than nobody uses")
					return
				}
				if used[c].Swap(true) {
					t.Error("two requests have one connection")
					return
				}
				used[c].Store(false)
				client.give(port, c)
			}
		})
	}
	under.Wait()
}
