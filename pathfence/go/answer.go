package pathfence

import (
	"bufio"
	"io"
	"mime"
	"net"
	"net/http"
	"os"

	"temper.dev/temper/pathfence/go/internal/wire"
)

// answer is a response, and what is known of it. It has all that net/http's writers have; what the writer behind it lacks fails
// with http.ErrNotSupported.
type answer struct {
	http.ResponseWriter
	of     *Serving
	waits  clientWaits
	begun  bool
	status int
}

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// begin is called before the first byte of the response, and gives its status.
func (a *answer) begin(status int) int {
	if a.begun {
		return status
	}
	reason := a.of.RefusedBelow()
	if late := a.of.refusedLate(); late != "" && status >= 400 { // the handler takes it for a fault of the client's
		reason, status = late, http.StatusServiceUnavailable
	}
	a.begun, a.status = true, status
	// A refusal of a peer is passed on as such: no client is to try again.
	if reason != "" && status >= 500 {
		a.Header().Set(wire.ShedHeader, reason)
		a.Header().Set("retry-after", a.of.retryAfter())
	}
	if kind, _, _ := mime.ParseMediaType(a.Header().Get("content-type")); kind == "text/event-stream" && outcomeOf(status) == OK {
		a.of.permit.Idle() // from now on it waits for events
	}
	return status
}

// goesOn ends a wait: what is left is to end the response, for which nobody is refused.
func (a *answer) goesOn() {
	if a.waits.end() {
		a.of.permit.Resume()
	}
}

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	if status >= 200 || status == http.StatusSwitchingProtocols { // else it is a hint, and the status is to come
		status = a.begin(status)
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (a *answer) Write(p []byte) (int, error) {
	a.begin(http.StatusOK)
	a.waits.begin()
	defer a.goesOn()
	return a.ResponseWriter.Write(p)
}

// WriteString implements io.StringWriter.
func (a *answer) WriteString(s string) (int, error) {
	a.begin(http.StatusOK)
	a.waits.begin()
	defer a.goesOn()
	return io.WriteString(a.ResponseWriter, s)
}

// ReadFrom implements io.ReaderFrom: files are sent by the kernel, where the writer can do that. All else is copied through
// Write, since it may wait for what it comes from, which is a call.
func (a *answer) ReadFrom(src io.Reader) (int64, error) {
	to, is := a.ResponseWriter.(io.ReaderFrom)
	if !is || !isFile(src) {
		return io.Copy(struct{ io.Writer }{a}, src)
	}
	a.begin(http.StatusOK)
	a.waits.begin()
	defer a.goesOn()
	return to.ReadFrom(src)
}

// isFile says whether it is what http.FileServer sends.
func isFile(src io.Reader) bool {
	if part, is := src.(*io.LimitedReader); is {
		src = part.R
	}
	_, is := src.(*os.File)
	return is
}

// Flush implements http.Flusher.
func (a *answer) Flush() { _ = a.FlushError() }

// FlushError is for http.ResponseController.
func (a *answer) FlushError() error {
	a.begin(http.StatusOK)
	a.waits.begin()
	defer a.goesOn()
	return http.NewResponseController(a.ResponseWriter).Flush()
}

// Hijack implements http.Hijacker.
func (a *answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffer, err := http.NewResponseController(a.ResponseWriter).Hijack()
	if err == nil {
		a.of.permit.Release(Light)
	}
	return conn, buffer, err
}

// CloseNotify implements http.CloseNotifier, which is deprecated, but which frameworks take for granted.
func (a *answer) CloseNotify() <-chan bool {
	if of, is := a.ResponseWriter.(http.CloseNotifier); is { //nolint:staticcheck
		return of.CloseNotify()
	}
	return nil // it blocks for ever
}

// Push implements http.Pusher.
func (a *answer) Push(target string, options *http.PushOptions) error {
	if to, is := a.ResponseWriter.(http.Pusher); is {
		return to.Push(target, options)
	}
	return http.ErrNotSupported
}
