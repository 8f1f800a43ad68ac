package bugtool

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// Of nodes and namespaces only what matters to tiers is given away.
func TestTrim(t *testing.T) {
	private := metav1.ObjectMeta{Name: "n", Annotations: map[string]string{"owner": "secret-team"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "secret-tool"}}}
	node := corev1.Node{ObjectMeta: private, Status: corev1.NodeStatus{
		Addresses: []corev1.NodeAddress{{Address: "secret-address"}}, Images: []corev1.ContainerImage{{Names: []string{"secret-image"}}},
		NodeInfo: corev1.NodeSystemInfo{KernelVersion: "6.18.15", MachineID: "secret-id", SystemUUID: "secret-uuid", BootID: "secret-boot"},
	}}
	namespace := corev1.Namespace{ObjectMeta: private}
	namespace.Labels = map[string]string{"temper.dev/highest-tier": "critical", "bill-to": "secret-account"}
	events := &corev1.EventList{Items: []corev1.Event{
		{ObjectMeta: private, Source: corev1.EventSource{Component: "temper-agent"}, Message: "not enforced"},
		{InvolvedObject: corev1.ObjectReference{Name: "temper-agent-x7k"}, Message: "killed"},
		{InvolvedObject: corev1.ObjectReference{Name: "web"}, Message: "secret-event"},
	}}
	nodes, namespaces := &corev1.NodeList{Items: []corev1.Node{node}}, &corev1.NamespaceList{Items: []corev1.Namespace{namespace}}
	if err := errors.Join(trim(nodes), trim(namespaces), trim(events)); err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal([]any{nodes, namespaces, events})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "secret") {
		t.Errorf("%s", text)
	}
	for _, kept := range []string{"6.18.15", "temper.dev/highest-tier: critical", "not enforced", "killed"} {
		if !strings.Contains(string(text), kept) {
			t.Errorf("no %s in\n%s", kept, text)
		}
	}
}

func TestEndOfALog(t *testing.T) {
	long := strings.Repeat("a", 5*mostLog) + "the end"
	for text, want := range map[string]string{"": "", "short": "short", long: long[len(long)-mostLog:]} {
		if got, err := end(iotest.HalfReader(strings.NewReader(text))); err != nil || string(got) != want {
			t.Errorf("%d bytes of %d: %v", len(got), len(text), err)
		}
	}
	broken := errors.New("broken")
	if got, err := end(io.MultiReader(strings.NewReader("so far"), iotest.ErrReader(broken))); string(got) != "so far" || !errors.Is(err, broken) {
		t.Errorf("%s, %v", got, err)
	}
}

func TestWrite(t *testing.T) {
	b := &Bundle{Files: map[string][]byte{"status.yaml": []byte("[]\n"), "logs/n/p.log": []byte("said\n")}}
	var out bytes.Buffer
	if err := b.Write(&out, "report", time.Unix(1e9, 0)); err != nil {
		t.Fatal(err)
	}
	zipped, err := gzip.NewReader(&out)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for archive := tar.NewReader(zipped); ; {
		header, err := archive.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, header.Name)
	}
	if want := []string{"report/logs/n/p.log", "report/status.yaml"}; !slices.Equal(names, want) {
		t.Errorf("%v", names)
	}
}
