//go:build kubernetes

package kubernetes

import (
	"context"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"temper.dev/temper/api/v1alpha1"
)

// A roll-out goes on once an agent has said what is in force, and stops where that is less than an agent before it had.
func TestReadiness(t *testing.T) {
	n := newNode(t, nil)
	address := freePort(t, "127.0.0.1").String()
	probe := func() (int, string) {
		response, err := http.Get("http://" + address + "/readyz")
		if err != nil {
			return 0, err.Error()
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			return 0, err.Error()
		}
		return response.StatusCode, string(text)
	}
	await := func(what string, status int, why string) {
		t.Helper()
		eventually(t, what, func() bool {
			got, text := probe()
			return got == status && strings.Contains(text, why)
		})
	}
	restart := func(kubeconfig []byte) {
		t.Helper()
		n.end(syscall.SIGKILL)
		n.start(kubeconfig, "--ready", address)
	}
	remember := func(kernel string) {
		t.Helper()
		n.end(syscall.SIGKILL)
		var object v1alpha1.TemperNode
		if err := cluster.Get(t.Context(), client.ObjectKey{Name: n.name}, &object); err != nil {
			t.Fatal(err)
		}
		object.Status.EnforcedKernelVersion = kernel
		if err := cluster.Status().Update(t.Context(), &object); err != nil {
			t.Fatal(err)
		}
		n.start(asAgent(t, n.name), "--ready", address)
	}
	safeMode := func(onOff string) {
		t.Helper()
		if _, errs, status := kubectlTemper(t, server.KubeConfig, "safe-mode", n.name, onOff); status != 0 {
			t.Fatal(errs)
		}
	}
	restart(unanswered(t, n.name))
	await("it has not reported", http.StatusServiceUnavailable, "its TemperNode is not written yet")
	restart(asAgent(t, n.name))
	await("a node that never enforced tiers is ready once it has said so", http.StatusOK, "ready")
	remember("0.1-another")
	await("another kernel could", http.StatusOK, "ready")

	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		t.Fatal(err)
	}
	kernel := unix.ByteSliceToString(u.Release[:])
	const less = "tiers were enforced here with this kernel, and are not now"
	remember(kernel)
	await("this kernel could", http.StatusServiceUnavailable, less)
	restart(asAgent(t, n.name))
	await("a restart forgets nothing", http.StatusServiceUnavailable, less)
	if s := n.status(); s.EnforcedKernelVersion != kernel {
		t.Errorf("the TemperNode has forgotten the kernel: %q, want %q", s.EnforcedKernelVersion, kernel)
	}
	safeMode("on")
	await("safe mode is on purpose", http.StatusOK, "ready")
	safeMode("off")
	await("safe mode has ended", http.StatusServiceUnavailable, less)
	forget(t, "kernelVersion")
	restart(asAgent(t, n.name))
	await("the definition of an older version", http.StatusServiceUnavailable, "does not keep status.kernelVersion of a TemperNode")
}

// forget takes a field out of the TemperNode's CustomResourceDefinition until the test ends, as an older one has it.
func forget(t *testing.T, field string) {
	t.Helper()
	crds := definitions(t)
	const name = "tempernodes.temper.dev"
	set := func(change func(fields map[string]apiextensionsv1.JSONSchemaProps)) {
		t.Helper()
		err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
			var crd apiextensionsv1.CustomResourceDefinition
			if err := crds.Get(context.Background(), client.ObjectKey{Name: name}, &crd); err != nil {
				return err
			}
			change(crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"].Properties)
			return crds.Update(context.Background(), &crd)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var taken apiextensionsv1.JSONSchemaProps
	set(func(fields map[string]apiextensionsv1.JSONSchemaProps) {
		taken = fields[field]
		delete(fields, field)
	})
	t.Cleanup(func() {
		set(func(fields map[string]apiextensionsv1.JSONSchemaProps) { fields[field] = taken })
	})
}

// definitions is a client for CustomResourceDefinitions.
func definitions(t *testing.T) client.Client {
	t.Helper()
	known := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(known); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(server.Config, client.Options{Scheme: known})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
