package nodepods

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// mostOfAnError bounds what is read of an answer that refuses.
const mostOfAnError = 64 << 10

// hearing is how the last request went for each kind of object that is watched: for it all, or for what changes. A watch
// that ends is usual, and asked for again at once; whether that goes well is what counts.
type hearing struct {
	changed func()

	mu     sync.Mutex
	faults map[string]error // by the kind's plural, which ends the URL
}

// over hears what goes through another transport.
func (h *hearing) over(next http.RoundTripper) http.RoundTripper {
	return transport(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		if request.Context().Err() != nil { // whoever asked has gone
			return response, err
		}
		fault := err
		if err == nil && response.StatusCode != http.StatusOK {
			fault = refusal(response)
		}
		if h.note(path.Base(request.URL.Path), fault) {
			h.changed()
		}
		return response, err
	})
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(request *http.Request) (*http.Response, error) { return t(request) }

// refusal is what an answer other than OK says, which stays to be read.
func refusal(response *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(response.Body, mostOfAnError))
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), response.Body), response.Body}
	var status metav1.Status
	if err == nil && json.Unmarshal(body, &status) == nil && status.Message != "" {
		return errors.New(status.Message)
	}
	return fmt.Errorf("the API server says %s", response.Status)
}

// note keeps how it went, and tells whether it went well before and does not now, or the reverse.
func (h *hearing) note(kind string, fault error) (turned bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	turned = (h.faults[kind] == nil) != (fault == nil)
	h.faults[kind] = fault
	return turned
}

// problems are the kinds of which nothing is heard.
func (h *hearing) problems() (list []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for kind, fault := range h.faults {
		if fault != nil {
			list = append(list, fmt.Sprintf("cannot watch %s: %v; what was known last holds", kind, fault))
		}
	}
	slices.Sort(list)
	return list
}
