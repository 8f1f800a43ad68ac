package pathfence

import (
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

func (c *clientWaits) end() {
	if took := time.Since(c.began); took > briefly {
		c.waited += took
	}
	if !c.timer.Stop() {
		<-c.paused
		c.permit.Resume()
	}
}

// body is a request's, which its client may send slowly.
type body struct {
	io.ReadCloser
	waits clientWaits
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	b.waits.begin()
	defer b.waits.end()
	return b.ReadCloser.Read(p)
}
