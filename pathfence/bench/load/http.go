package load

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// HTTP asks HTTP services: one request at a time on a connection, and as many connections as there are requests under
// way.
type HTTP struct {
	addresses map[string]string // of each path
	client    *http.Client
}

// NewHTTP is a client of services whose addresses are known by path.
func NewHTTP(addresses map[string]string) *HTTP {
	transport := &http.Transport{MaxIdleConnsPerHost: 1 << 16, DisableCompression: true} // no request waits for a connection of another's
	refuse := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &HTTP{addresses, &http.Client{Transport: transport, CheckRedirect: refuse}}
}

// Ask posts: what may have been read is not sent again.
func (h *HTTP) Ask(path string, work time.Duration, deadline time.Time) error {
	address, ok := h.addresses[path]
	if !ok {
		return fmt.Errorf("no address for path %q", path)
	}
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("%s?work_us=%d", address, work.Microseconds()), http.NoBody)
	if err != nil {
		return err
	}
	answer, err := h.client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil { // to the end: the connection can be used again
		return err
	}
	return verdict(answer)
}

// verdict tells what was refused from what failed: a refusal says so, and is not to be tried again.
func verdict(answer *http.Response) error {
	switch {
	case answer.StatusCode == http.StatusOK:
		return nil
	case answer.StatusCode == http.StatusServiceUnavailable && answer.Header.Get("x-pf-shed") != "":
		return ErrRefused
	}
	return fmt.Errorf("it answered %s", answer.Status)
}

// Close ends the connections that nobody uses.
func (h *HTTP) Close() { h.client.CloseIdleConnections() }
