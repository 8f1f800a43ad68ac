package load

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/apache/thrift/lib/go/thrift"
)

// Thrift asks Thrift services on this machine: framed, binary, one request at a time on a connection, and as many
// connections as there are requests under way.
type Thrift struct {
	ports  map[string]int // of each path
	prefix string         // of methods' names

	mutex sync.Mutex
	idle  map[int][]*connection // by port
}

// NewThrift is a client of services whose ports are known by path.
func NewThrift(ports map[string]int) *Thrift {
	return &Thrift{ports: ports, idle: map[int][]*connection{}}
}

// NewThriftStating is a client of fenced services, which it tells how long it wants to wait.
func NewThriftStating(ports map[string]int, target time.Duration) *Thrift {
	t := NewThrift(ports)
	t.prefix = fmt.Sprintf("pf!!%d!!", target.Milliseconds())
	return t
}

// Ask calls the method named as the path.
func (t *Thrift) Ask(path string, work time.Duration, deadline time.Time) error {
	port, ok := t.ports[path]
	if !ok {
		return fmt.Errorf("no port for path %q", path)
	}
	c, err := t.take(port, deadline)
	if err != nil {
		return err
	}
	err = c.call(path, work, deadline)
	if err == nil || isException(err) { // the message ended: the connection can be used again
		t.give(port, c)
	} else {
		c.conn.Close()
	}
	return refusal(err)
}

// Close ends the connections that nobody uses.
func (t *Thrift) Close() {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	for _, list := range t.idle {
		for _, c := range list {
			c.conn.Close()
		}
	}
	clear(t.idle)
}

func (t *Thrift) take(port int, deadline time.Time) (*connection, error) {
	if c := t.spare(port); c != nil {
		return c, nil
	}
	dialer := net.Dialer{Deadline: deadline}
	conn, err := dialer.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, err
	}
	return newConnection(conn, t.prefix), nil
}

// spare is a connection that nobody uses, or nil.
func (t *Thrift) spare(port int) *connection {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	list := t.idle[port]
	n := len(list)
	if n == 0 {
		return nil
	}
	t.idle[port] = list[:n-1]
	return list[n-1]
}

func (t *Thrift) give(port int, c *connection) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.idle[port] = append(t.idle[port], c)
}

type connection struct {
	conn   net.Conn
	client *thrift.TStandardClient
}

func newConnection(conn net.Conn, prefix string) *connection {
	config := &thrift.TConfiguration{}
	framed := thrift.NewTFramedTransportConf(thrift.NewStreamTransportRW(conn), config)
	protocol := thrift.NewTBinaryProtocolConf(framed, config)
	return &connection{conn, thrift.NewTStandardClient(protocol, prefixing{protocol, prefix})}
}

// prefixing writes something in front of methods' names, which answers do not have.
type prefixing struct {
	thrift.TProtocol
	prefix string
}

func (p prefixing) WriteMessageBegin(ctx context.Context, name string, kind thrift.TMessageType, sequence int32) error {
	return p.TProtocol.WriteMessageBegin(ctx, p.prefix+name, kind, sequence)
}

func (c *connection) call(path string, work time.Duration, deadline time.Time) error {
	if err := c.conn.SetDeadline(deadline); err != nil {
		return err
	}
	_, err := c.client.Call(context.Background(), path, arguments(work.Microseconds()), result{})
	return err
}

func isException(err error) bool {
	var x thrift.TApplicationException
	return errors.As(err, &x)
}

// refusal tells what was refused from what failed.
func refusal(err error) error {
	var x thrift.TApplicationException
	if errors.As(err, &x) && strings.Contains(x.Error(), "shed") {
		return ErrRefused
	}
	return err
}

// arguments of every method: 1: i64 work_us.
type arguments int64

func (a arguments) Write(ctx context.Context, p thrift.TProtocol) error {
	return errors.Join(
		p.WriteStructBegin(ctx, "args"),
		p.WriteFieldBegin(ctx, "work_us", thrift.I64, 1), p.WriteI64(ctx, int64(a)), p.WriteFieldEnd(ctx),
		p.WriteFieldStop(ctx), p.WriteStructEnd(ctx))
}

func (arguments) Read(ctx context.Context, p thrift.TProtocol) error {
	return p.Skip(ctx, thrift.STRUCT)
}

// result of every method is empty.
type result struct{}

func (result) Write(ctx context.Context, p thrift.TProtocol) error {
	return errors.Join(p.WriteStructBegin(ctx, "result"), p.WriteFieldStop(ctx), p.WriteStructEnd(ctx))
}

func (result) Read(ctx context.Context, p thrift.TProtocol) error { return p.Skip(ctx, thrift.STRUCT) }
