// Package podproxy asks pods through the API server, which takes the right to get pods/proxy.
package podproxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Pod is a pod's port. The API server does not verify a certificate that it shows.
type Pod struct {
	Namespace, Name string
	Port            string // its number
	HTTPS           bool
}

// ErrNotFound is what a pod answers of a path that it does not have.
var ErrNotFound = errors.New("status 404")

// Get gives what a pod has at a path. The error is what the API server says where it refuses, or cannot reach the pod, of which
// client-go makes "unknown"; else the pod's own.
func Get(ctx context.Context, clients kubernetes.Interface, pod Pod, path string) ([]byte, error) {
	scheme := "http"
	if pod.HTTPS {
		scheme = "https"
	}
	body, err := clients.CoreV1().Pods(pod.Namespace).ProxyGet(scheme, pod.Name, pod.Port, path, nil).DoRaw(ctx)
	var refused apierrors.APIStatus
	if !errors.As(err, &refused) {
		return body, err
	}
	var said metav1.Status
	switch code := refused.Status().Code; {
	case json.Unmarshal(body, &said) == nil && said.Kind == "Status":
		return nil, errors.New(said.Message)
	case code == http.StatusNotFound:
		return nil, ErrNotFound
	default:
		first, _, _ := strings.Cut(strings.TrimSpace(string(body)), "\n")
		return nil, fmt.Errorf("status %d: %.200s", code, first)
	}
}
