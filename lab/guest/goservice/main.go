// Command goservice is a service written in Go whose collector comes in bursts, and its load generator.
//
//	goservice serve SOCKET PROCS
//	goservice load SOCKET RATE CLIENTS WARM_UP_S SECONDS SEED LATENCY_FILE
//
// A request replaces some of the service's live objects. Once as many have been replaced as are live, the collector
// marks them all, with a quarter of PROCS and all that idle: for a moment, a service that needs less than its limit
// wants more.
//
// With RATE 0 the load is a closed loop. The file holds every latency of the measured part in ns, as 64-bit words, from
// when the request was due.
package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"
)

const (
	live     = 60_000  // objects; few, since the lab's CPUs are slow to mark them
	replaced = 1_000   // by a request
	backlog  = 1 << 16 // requests that are due and not sent
)

func main() {
	var err error
	switch {
	case len(os.Args) == 4 && os.Args[1] == "serve":
		err = serve(os.Args[2], number(os.Args[3]))
	case len(os.Args) == 9 && os.Args[1] == "load":
		l := load{socket: os.Args[2], rate: decimal(os.Args[3]), clients: number(os.Args[4]), seed: uint64(number(os.Args[7]))}
		l.begin = time.Now().Add(seconds(os.Args[5]))
		l.end = l.begin.Add(seconds(os.Args[6]))
		err = l.run(os.Args[8])
	default:
		err = errors.New("usage: goservice serve SOCKET PROCS | load SOCKET RATE CLIENTS WARM_UP_S SECONDS SEED LATENCY_FILE")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "goservice:", err)
		os.Exit(1)
	}
}

func decimal(text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		fmt.Fprintln(os.Stderr, "goservice:", err)
		os.Exit(2)
	}
	return v
}

func number(text string) int { return int(decimal(text)) }

func seconds(text string) time.Duration { return time.Duration(decimal(text) * float64(time.Second)) }

// object is what the collector has to look at.
type object struct {
	next *object
	data [7]uint64
}

// store is the service's live objects.
type store struct {
	mu      sync.Mutex
	objects [live]*object
	at      int
}

func (s *store) put(batch []*object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range batch {
		s.objects[s.at] = o
		s.at = (s.at + 1) % live
	}
}

func newBatch() []*object {
	batch := make([]*object, replaced)
	var last *object
	for i := range batch {
		batch[i] = &object{data: [7]uint64{uint64(i)}}
		if i%8 != 0 { // short chains, which die with their neighbours
			batch[i].next = last
		}
		last = batch[i]
	}
	return batch
}

// serve says that it listens by a byte on its standard output.
func serve(socket string, procs int) error {
	runtime.GOMAXPROCS(procs) // as many as the CPUs that it sees: what its limit is, it does not ask
	var s store
	for range live / replaced {
		s.put(newBatch())
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	if _, err := os.Stdout.Write([]byte{'\n'}); err != nil {
		return err
	}
	for {
		c, err := listener.Accept()
		if err != nil {
			return err
		}
		go answer(c, &s)
	}
}

func answer(c net.Conn, s *store) {
	defer c.Close()
	request := make([]byte, 1)
	for {
		if _, err := io.ReadFull(c, request); err != nil {
			return
		}
		s.put(newBatch())
		if _, err := c.Write(request); err != nil {
			return
		}
	}
}

type load struct {
	socket     string
	rate       float64 // requests a second; 0: closed loop
	clients    int
	seed       uint64
	begin, end time.Time

	mu        sync.Mutex
	latencies []uint64
}

func (l *load) run(file string) error {
	due := make(chan time.Time, backlog)
	failed := make(chan error, l.clients)
	var clients sync.WaitGroup
	for range l.clients {
		c, err := net.Dial("unix", l.socket)
		if err != nil {
			return err
		}
		defer c.Close()
		clients.Go(func() { failed <- l.client(c, due) })
	}
	if l.rate == 0 {
		l.askAgain(due)
	} else if err := l.askInTime(due); err != nil {
		return err
	}
	clients.Wait()
	close(failed)
	for err := range failed {
		if err != nil {
			return err
		}
	}
	fmt.Printf("requests=%d\n", len(l.latencies))
	return l.write(file)
}

// askAgain lets each client send its next request when it has the answer to the last: a channel that is closed yields
// the zero time, which is due at once.
func (l *load) askAgain(due chan time.Time) { close(due) }

// askInTime makes requests due at random times, whatever becomes of the earlier ones.
func (l *load) askInTime(due chan time.Time) error {
	random := rand.New(rand.NewPCG(l.seed, 0))
	defer close(due)
	for at := time.Now(); at.Before(l.end); {
		time.Sleep(time.Until(at))
		select {
		case due <- at:
		default:
			return fmt.Errorf("more than %d requests are due and not sent", backlog)
		}
		at = at.Add(time.Duration(random.ExpFloat64() / l.rate * float64(time.Second)))
	}
	return nil
}

func (l *load) client(c net.Conn, due chan time.Time) error {
	var own []uint64
	byte1 := make([]byte, 1)
	for {
		at, more := <-due
		if !more {
			if l.rate > 0 || !time.Now().Before(l.end) {
				break
			}
			at = time.Now()
		}
		if _, err := c.Write(byte1); err != nil {
			return err
		}
		if _, err := io.ReadFull(c, byte1); err != nil {
			return err
		}
		if !at.Before(l.begin) && at.Before(l.end) {
			own = append(own, uint64(time.Since(at)))
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.latencies = append(l.latencies, own...)
	return nil
}

func (l *load) write(file string) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(f)
	for _, ns := range l.latencies {
		if err := binary.Write(out, binary.LittleEndian, ns); err != nil {
			return err
		}
	}
	return errors.Join(out.Flush(), f.Close())
}
