package pathfence

import (
	"context"
	"errors"
	"io"
	"time"
)

// slowClient is how long a request may wait for its client, in all, until it does so without a permit. A client that sends a byte
// each 19 ms would keep it for good, were each wait counted by itself.
const slowClient = 20 * time.Millisecond

// briefly is what is no wait: what the kernel takes to hand over what is there. It bounds each, once there were too many.
const briefly = 100 * time.Microsecond

// clientWaits gives a permit back while the request waits for a client that sends or reads slowly. It is used by one goroutine
// at a time.
type clientWaits struct {
	permit *Permit
	waited time.Duration // by now, with the permit
	began  time.Time     // the wait that is under way
	timer  *time.Timer
	paused chan struct{} // the timer has fired, and is done
}

// begin and end stand around what may wait.
func (c *clientWaits) begin() {
	c.began = time.Now()
	patience := max(briefly, slowClient-c.waited)
	if c.timer != nil {
		c.timer.Reset(patience)
		return
	}
	c.paused = make(chan struct{}, 1)
	c.timer = time.AfterFunc(patience, func() {
		c.permit.Pause()
		c.paused <- struct{}{}
	})
}

// end says whether the wait has paused the permit.
func (c *clientWaits) end() (paused bool) {
	if took := time.Since(c.began); took > briefly {
		c.waited += took
	}
	if c.timer.Stop() {
		return false
	}
	<-c.paused
	return true
}

// body is a request's, which its client may send slowly. What comes late waits for its turn as a request does that comes then: the
// work is yet to be done.
type body struct {
	io.ReadCloser
	ctx     context.Context
	of      *Serving
	waits   clientWaits
	refused error
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (n int, err error) {
	if b.refused != nil {
		return 0, b.refused
	}
	b.waits.begin()
	defer func() {
		if b.waits.end() {
			b.refused = b.of.resumeInTurn(b.ctx)
		}
		if b.refused != nil {
			err = b.refused // also where it is the end: nobody is to work for it
		}
	}()
	return b.ReadCloser.Read(p)
}

// resumeInTurn notes where the request is refused after all.
func (s *Serving) resumeInTurn(ctx context.Context) error {
	err := s.permit.resumeInTurn(ctx)
	var refused *RefusedError
	if errors.As(err, &refused) {
		s.late.Store(&refused.Reason)
	}
	return err
}

// refusedLate is why the request was refused when its body had come; "": it was not.
func (s *Serving) refusedLate() string {
	if reason := s.late.Load(); reason != nil {
		return *reason
	}
	return ""
}
