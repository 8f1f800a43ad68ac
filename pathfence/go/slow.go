package pathfence

import (
	"io"
	"time"
)

// slowClient is how long a request may wait for its client, until it does so without a permit.
const slowClient = 20 * time.Millisecond

// clientWaits gives a permit back while the request waits for a client that sends or reads slowly. It is used by one goroutine
// at a time.
type clientWaits struct {
	permit *Permit
	timer  *time.Timer
	paused chan struct{} // the timer has fired, and is done
}

// begin and end stand around what may wait.
func (c *clientWaits) begin() {
	if c.timer != nil {
		c.timer.Reset(slowClient)
		return
	}
	c.paused = make(chan struct{}, 1)
	c.timer = time.AfterFunc(slowClient, func() {
		c.permit.Pause()
		c.paused <- struct{}{}
	})
}

func (c *clientWaits) end() {
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
