package status

import (
	"context"
	"errors"
	"net"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/host"
)

// Registry gathers the figures of the node at root.
func Registry(root host.Root) *prometheus.Registry {
	return RegistryOf(func() (*Status, error) { return Now(root) })
}

// RegistryOf gathers the figures of what each look sees.
func RegistryOf(look func() (*Status, error)) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(Collector{Look: look})
	return registry
}

// Listen opens the address that a flag names. One that cannot be right is a usage error; one that is taken may be free at the
// next try.
func Listen(flag, address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if err == nil {
		return listener, nil
	}
	status, cure := exit.Failed, "name a free one with "+flag
	if _, wrong := errors.AsType[*net.AddrError](err); wrong {
		status, cure = exit.Usage, "use "+flag+" HOST:PORT, such as localhost:9770"
	}
	return nil, exit.New(status, cure, "nothing can be served at %s: %w", address, err)
}

// Serve answers scrapes of /metrics at address until ctx ends.
func Serve(ctx context.Context, address string, root host.Root) error {
	listener, err := Listen("--metrics", address)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(Registry(root), promhttp.HandlerOpts{}))
	context.AfterFunc(ctx, func() { listener.Close() })
	go serve(listener, mux) // it ends with ctx, and so does the agent
	return nil
}
