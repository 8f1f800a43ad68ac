package status

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"time"
)

const (
	// patience is how long a client may take to send its request, and again to read the response.
	patience = 10 * time.Second
	// retry is how long a failed Accept waits: out of file descriptors, it would fail again at once.
	retry = 100 * time.Millisecond
)

// serve answers connections until listener is closed. net/http reads the requests and writes the responses; its own Server
// also links TLS and HTTP/2, which --metrics does not speak: 1.6 MB (decision 66).
func serve(listener net.Listener, handler http.Handler) {
	for {
		conn, err := listener.Accept()
		switch {
		case err == nil:
			go answer(conn, handler)
		case errors.Is(err, net.ErrClosed):
			return
		default:
			time.Sleep(retry)
		}
	}
}

// answer reads one request, answers it, and closes the connection, as the response says.
func answer(conn net.Conn, handler http.Handler) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	response := response{header: http.Header{"Date": {time.Now().UTC().Format(http.TimeFormat)}}, status: http.StatusOK}
	request, err := http.ReadRequest(bufio.NewReader(io.LimitReader(conn, http.DefaultMaxHeaderBytes)))
	if err != nil {
		http.Error(&response, err.Error(), http.StatusBadRequest)
	} else {
		response.from(handler, request)
		request.Body.Close() // reads what is left: closing a connection with unread bytes may lose the response
	}
	_ = conn.SetDeadline(time.Now().Add(patience))
	_ = response.sendTo(conn, request) // a client that has gone needs none
}

// response is an http.ResponseWriter that keeps all of it until the end, so that its length is known.
type response struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// from has a handler write the response. One that panics must not end the agent.
func (r *response) from(handler http.Handler, request *http.Request) {
	defer func() {
		if why := recover(); why != nil {
			slog.Error("a request could not be answered", "path", request.URL.Path, "panic", why, "stack", string(debug.Stack()))
			*r = response{header: http.Header{"Date": r.header["Date"]}}
			http.Error(r, "the handler has failed", http.StatusInternalServerError)
		}
	}()
	handler.ServeHTTP(r, request)
}

func (r *response) Header() http.Header            { return r.header }
func (r *response) WriteHeader(status int)         { r.status = status }
func (r *response) Write(text []byte) (int, error) { return r.body.Write(text) }

// sendTo sends it as the response to request; nil: to one that could not be read.
func (r *response) sendTo(w io.Writer, request *http.Request) error {
	answer := http.Response{
		StatusCode: r.status, ProtoMajor: 1, ProtoMinor: 1, Request: request, Close: true,
		Header: r.header, Body: io.NopCloser(&r.body), ContentLength: int64(r.body.Len()),
	}
	return answer.Write(w)
}
