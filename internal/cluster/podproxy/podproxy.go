// Package podproxy asks pods through the API server, which takes the right to get pods/proxy.
package podproxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Pod is a pod's port. The API server does not verify a certificate that it shows.
type Pod struct {
	Namespace, Name string
	Port            string // its number
	HTTPS           bool
}

// ErrNotFound is what a pod answers of a path that it does not have.
var ErrNotFound = errors.New("status 404")

// most is more than a pod has to say, in bytes: it may be anybody's.
const most = 16 << 20

// Get gives what a pod has at a path. The error is what the API server says where it refuses, or cannot reach the pod, of which
// client-go makes "unknown"; else the pod's own. Nothing is asked again, as client-go does where an answer says when, and no
// redirect is followed: it would take the user's token along.
func Get(ctx context.Context, clients kubernetes.Interface, pod Pod, path string) ([]byte, error) {
	scheme := "http"
	if pod.HTTPS {
		scheme = "https"
	}
	api, ok := clients.CoreV1().RESTClient().(*rest.RESTClient)
	if !ok {
		return nil, errors.New("no API server is behind these clients")
	}
	url := api.Get().Namespace(pod.Namespace).Resource("pods").SubResource("proxy").
		Name(net.JoinSchemeNamePort(scheme, pod.Name, pod.Port)).Suffix(path).URL()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept-Encoding", "identity") // or a megabyte may become a gigabyte
	client := http.Client{Transport: api.Client.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		return nil, errors.Unwrap(err) // without the address, which says less than the pod's name
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, most+1))
	switch {
	case err != nil:
		return nil, err
	case len(body) > most:
		return nil, fmt.Errorf("the answer is longer than %d MiB", most>>20)
	case response.StatusCode == http.StatusOK:
		return body, nil
	}
	var said metav1.Status
	switch {
	case json.Unmarshal(body, &said) == nil && said.Kind == "Status":
		return nil, errors.New(said.Message)
	case response.StatusCode == http.StatusNotFound:
		return nil, ErrNotFound
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(body)), "\n")
	return nil, fmt.Errorf("status %d: %.200s", response.StatusCode, first)
}
