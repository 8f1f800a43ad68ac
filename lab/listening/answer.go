package listening

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// GetStatus asks the port of this host for / in HTTP/1.1, and returns the status of the answer: 0 where it speaks no HTTP, or not
// within two seconds.
func GetStatus(ctx context.Context, port int) int {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://localhost:%d/", port), nil)
	if err != nil {
		return 0
	}
	client := http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	answer, err := client.Do(r)
	if err != nil {
		return 0
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}
