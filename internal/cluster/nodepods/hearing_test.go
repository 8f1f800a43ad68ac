package nodepods

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
)

func TestHearing(t *testing.T) {
	const forbidden = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"pods is forbidden","code":403}`
	status, body := http.StatusForbidden, forbidden
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		io.WriteString(w, body)
	}))
	turned := 0
	h := &hearing{changed: func() { turned++ }, faults: map[string]error{}}
	client := http.Client{Transport: h.over(http.DefaultTransport)}
	get := func(kind string) {
		t.Helper()
		response, err := client.Get(server.URL + "/api/v1/" + kind + "?watch=true")
		if err != nil {
			return // the server is gone
		}
		defer response.Body.Close()
		if text, err := io.ReadAll(response.Body); err != nil || string(text) != body {
			t.Errorf("the answer has become %q, %v", text, err)
		}
	}
	expect := func(turns int, problems ...string) {
		t.Helper()
		if got := h.problems(); !slices.Equal(got, problems) || turned != turns {
			t.Errorf("problems %q after %d turns, want %q after %d", got, turned, problems, turns)
		}
	}
	get("pods")
	get("pods")
	expect(1, "cannot watch pods: pods is forbidden; what was known last holds")
	status, body = http.StatusServiceUnavailable, "later"
	get("nodes")
	expect(2, "cannot watch nodes: the API server says 503 Service Unavailable; what was known last holds",
		"cannot watch pods: pods is forbidden; what was known last holds")
	status, body = http.StatusOK, "{}"
	get("nodes")
	get("pods")
	expect(4)
	server.Close()
	get("pods")
	if got := h.problems(); len(got) != 1 || turned != 5 {
		t.Errorf("a server that is gone: %q", got)
	}
}
