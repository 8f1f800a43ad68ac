//go:build kubernetes

package kubernetes

import (
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"temper.dev/temper/internal/path/fencetop"
	pathfence "temper.dev/temper/pathfence/go"
)

// fenced serves a fence's state at /actuator/pathfence, in what the API server takes for a pod behind the service.
func fenced(t *testing.T, space, service, name string) *pathfence.Fence {
	t.Helper()
	fence, err := pathfence.New(pathfence.Config{Workers: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fence.Close)
	listener, err := net.Listen("tcp", net.JoinHostPort(reachable(t), "0"))
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/actuator/pathfence", fence.StateHandler())
	mux.HandleFunc("/full", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("retry-after", "1")
		http.Error(w, "come again", http.StatusServiceUnavailable)
	})
	mux.HandleFunc("/elsewhere", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/actuator/pathfence", http.StatusFound)
	})
	mux.HandleFunc("/huge", func(w http.ResponseWriter, _ *http.Request) {
		for range 17 << 4 {
			w.Write(make([]byte, 1<<16))
		}
	})
	server := &http.Server{Handler: mux}
	go server.Serve(listener)
	t.Cleanup(func() { server.Close() })

	at := listener.Addr().(*net.TCPAddr)
	pod := bind(t, podOf(space, name, ""), "somewhere")
	create(t, pod)
	pod.Status.Phase, pod.Status.PodIP = corev1.PodRunning, at.IP.String()
	pod.Status.PodIPs = []corev1.PodIP{{IP: pod.Status.PodIP}}
	if err := cluster.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	port, ready := int32(at.Port), true
	create(t, &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: space, Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{pod.Status.PodIP}, Conditions: discoveryv1.EndpointConditions{Ready: &ready},
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: space, Name: name}}},
		Ports: []discoveryv1.EndpointPort{{Name: new("gossip"), Port: &port, Protocol: new(corev1.ProtocolUDP)}, {Name: new("http"), Port: &port}},
	})
	return fence
}

func serviceOf(space, name string, ports ...corev1.ServicePort) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: name}, Spec: corev1.ServiceSpec{Ports: ports}}
}

// userWho is a kubeconfig for somebody who may do this in a namespace, and nothing else.
func userWho(t *testing.T, space, name string, may ...rbacv1.PolicyRule) []byte {
	t.Helper()
	role := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}
	create(t, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: name}, Rules: may})
	create(t, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: name}, RoleRef: role,
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}}})
	return asUser(t, name, "system:authenticated")
}

// The fences of a service's pods are asked through the API server, by somebody who may do no more than the help says.
func TestFences(t *testing.T) {
	const space = "fences"
	namespace(t, space, nil)
	create(t, serviceOf(space, "orders", corev1.ServicePort{Name: "http", Port: 80}))
	create(t, serviceOf(space, "empty", corev1.ServicePort{Name: "http", Port: 80}))
	busy := fenced(t, space, "orders", "orders-1")
	fenced(t, space, "orders", "orders-2").Off(true)
	permit, err := busy.Acquire(t.Context(), pathfence.Request{Key: "GET:/orders/:id"})
	if err != nil {
		t.Fatal(err)
	}
	defer permit.Release(pathfence.OK)

	slices := rbacv1.PolicyRule{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: []string{"list"}}
	sre := userWho(t, space, "sre", slices, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"services", "pods/proxy"}, Verbs: []string{"get"}})
	listing := userWho(t, space, "lister", slices, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: []string{"get"}})

	var looks []fencetop.Look
	eventually(t, "both pods are asked, once the rights are in force", func() bool {
		out, _, status := kubectlTemper(t, sre, "fences", "orders", "-n", space, "--once", "--json")
		looks = nil
		return status == 0 && json.Unmarshal([]byte(out), &looks) == nil
	})
	if len(looks) != 2 || looks[0].Target != "orders-1" || looks[0].State.InFlight != 1 || looks[0].State.Off ||
		looks[1].Target != "orders-2" || looks[1].State.InFlight != 0 || !looks[1].State.Off {
		t.Errorf("%+v", looks)
	}
	// A pod that has no port yet hides no other.
	create(t, &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: space, Name: "portless", Labels: map[string]string{discoveryv1.LabelServiceName: "half"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{reachable(t)}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: space, Name: "half-2"}}},
	})
	create(t, serviceOf(space, "half", corev1.ServicePort{Name: "http", Port: 80}))
	fenced(t, space, "half", "half-1")
	for _, c := range []struct {
		name   string
		user   []byte
		args   []string
		status int
		says   string
	}{
		{"a table", sre, []string{"orders"}, 0, "orders-2 · OFF: the plain pool · 0 of 4 workers taken"},
		{"a port by name", sre, []string{"orders", "--port", "http"}, 0, "orders-1 · on · 1 of 4 workers taken"},
		{"no such port", sre, []string{"orders", "--port", "admin"}, 1, "it has no port admin: it has http "},
		{"nobody at the port", sre, []string{"orders", "--port", "1"}, 1, "connection refused"},
		{"nothing at the path", sre, []string{"orders", "--path", "/fence"}, 1, "/fence: status 404; --path says where"},
		{"a pod that refuses", sre, []string{"orders", "--path", "/full"}, 1, "/full: status 503: come again"},
		{"a pod that sends elsewhere", sre, []string{"orders", "--path", "/elsewhere"}, 1, "/elsewhere: status 302"},
		{"a pod that says too much", sre, []string{"orders", "--path", "/huge"}, 1, "the answer is longer than 16 MiB"},
		{"no pods", sre, []string{"empty", "orders"}, 1, "empty · cannot be asked: no pod is behind it"},
		{"a pod without the port", sre, []string{"half"}, 1, "half-1 · on · 0 of 4 workers taken · 0 requests wait\nCLASS  LIMIT  RESERVE  IN FLIGHT  QUEUED  LENT  KNEE  HOLD  GRANTED  SHED  MISSED  FAILED  LIMIT BY\n\nhalf-2 · cannot be asked: which port says what the fence does is not known: it has no TCP port"},
		{"no such service", sre, []string{"order"}, 1, "there is no Service order in namespace fences"},
		{"no rights to ask pods", listing, []string{"orders"}, 1, `User "lister" cannot get resource "pods/proxy"`},
		{"no rights", asUser(t, "guest", "system:authenticated"), []string{"orders"}, 1, `User "guest" cannot get resource "services"`},
		{"no service", sre, nil, 2, "SERVICE is missing"},
		{"no path", sre, []string{"orders", "--path", "fence"}, 2, `--path "fence" is no path; begin it with /`},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, errs, status := kubectlTemper(t, c.user, append([]string{"fences", "-n", space, "--once"}, c.args...)...)
			if status != c.status || !strings.Contains(out+errs, c.says) || strings.Contains(out, "\x1b") {
				t.Errorf("status %d, want %d and %q:\n%s%s", status, c.status, c.says, out, errs)
			}
		})
	}
}
