// Package fences asks the fences of a cluster's services, pod by pod, through the API server.
package fences

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"temper.dev/temper/internal/cluster/podproxy"
	"temper.dev/temper/internal/path/fencetop"
)

// Source is where fences are asked.
type Source struct {
	Clients   kubernetes.Interface
	Namespace string
	Services  []string
	Port      string // of the pods: a number, or a name that their Service has for it; empty: the only one of the Service
	Path      string // as /actuator/pathfence
	HTTPS     bool   // the API server does not verify the pod's certificate
}

// Check says which of the services there are not.
func (s *Source) Check(ctx context.Context) error {
	for _, name := range s.Services {
		if _, err := s.Clients.CoreV1().Services(s.Namespace).Get(ctx, name, metav1.GetOptions{}); apierrors.IsNotFound(err) {
			return fmt.Errorf("there is no Service %s in namespace %s", name, s.Namespace)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// Names are the Services of the namespace.
func (s *Source) Names(ctx context.Context) (names []string, err error) {
	all, err := s.Clients.CoreV1().Services(s.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, service := range all.Items {
		names = append(names, service.Name)
	}
	return names, nil
}

// Round asks the pods that are behind the services now, in the order of their names. A service whose pods cannot be found has a
// look of its own, which says why.
func (s *Source) Round(ctx context.Context) (looks []fencetop.Look) {
	for _, service := range s.Services {
		pods, err := s.pods(ctx, service)
		if err != nil {
			looks = append(looks, fencetop.Look{Target: service, Time: time.Now(), Error: err.Error()})
			continue
		}
		looks = append(looks, fencetop.Round(ctx, slices.Sorted(maps.Keys(pods)), func(ctx context.Context, pod string) ([]byte, error) {
			at := pods[pod]
			if at.noPort != nil {
				return nil, at.noPort
			}
			return s.ask(ctx, pod, at.port)
		})...)
	}
	return looks
}

// place is the port of a pod that is asked, or why there is none.
type place struct {
	port   string
	noPort error
}

// pods are those behind a service, ready or not.
func (s *Source) pods(ctx context.Context, service string) (map[string]place, error) {
	found, err := s.Clients.DiscoveryV1().EndpointSlices(s.Namespace).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service})
	if err != nil {
		return nil, err
	}
	pods, others := map[string]place{}, 0
	for _, slice := range found.Items {
		at := s.place(slice.Ports)
		for _, e := range slice.Endpoints {
			if e.TargetRef == nil || e.TargetRef.Kind != "Pod" {
				others++
			} else if pods[e.TargetRef.Name].port == "" { // of two slices, one may have the port
				pods[e.TargetRef.Name] = at
			}
		}
	}
	switch {
	case len(pods) > 0:
		return pods, nil
	case others > 0:
		return nil, errors.New("what is behind it are no pods")
	}
	return nil, errors.New("no pod is behind it")
}

// place is that of a slice's pods.
func (s *Source) place(all []discoveryv1.EndpointPort) place {
	if number, err := strconv.ParseUint(s.Port, 10, 16); err == nil && number > 0 {
		return place{port: s.Port}
	}
	all = slices.DeleteFunc(slices.Clone(all), func(p discoveryv1.EndpointPort) bool {
		return p.Port == nil || p.Protocol != nil && *p.Protocol != corev1.ProtocolTCP
	})
	known := []string{}
	for _, p := range all {
		number, name := strconv.Itoa(int(*p.Port)), ""
		if p.Name != nil {
			name = *p.Name
		}
		if s.Port == "" && len(all) == 1 || s.Port != "" && s.Port == name {
			return place{port: number}
		}
		known = append(known, strings.TrimSpace(name+" "+number))
	}
	has := "it has no TCP port"
	if len(known) > 0 {
		has = "it has " + strings.Join(known, ", ")
	}
	if s.Port != "" {
		return place{noPort: fmt.Errorf("it has no port %s: %s", s.Port, has)}
	}
	return place{noPort: fmt.Errorf("which port says what the fence does is not known: %s (give --port, by name or number)", has)}
}

// ask gives what a pod says.
func (s *Source) ask(ctx context.Context, pod, port string) ([]byte, error) {
	text, err := podproxy.Get(ctx, s.Clients, podproxy.Pod{Namespace: s.Namespace, Name: pod, Port: port, HTTPS: s.HTTPS}, s.Path)
	if errors.Is(err, podproxy.ErrNotFound) {
		err = fmt.Errorf("%w; --path says where the state is, and Spring Boot shows it if management.endpoints.web.exposure.include has pathfence", err)
	}
	if err != nil {
		return nil, fmt.Errorf("port %s, %s: %w", port, s.Path, err)
	}
	return text, nil
}
