// Package bugtool collects what a report of a fault needs of a cluster: Temper's own objects, what its agents said, and of
// the nodes what matters to a scheduler. Of others' pods it has names, tiers and reasons, and nothing else.
package bugtool

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/cluster/explain"
	"temper.dev/temper/internal/cluster/fleet"
)

// mostLog is how much of each agent's log is kept: its end.
const mostLog = 1 << 20

const (
	versionFile = "version.yaml"
	faultsFile  = "faults.txt"
	agentName   = "temper-agent"
)

// Bundle is what was collected. What could not be had is told, and does not keep the rest back.
type Bundle struct {
	Files  map[string][]byte
	Faults []string
}

type collector struct {
	*Bundle
	cluster client.Client
	clients kubernetes.Interface
	nodes   []string // asked for; none: all
}

// Collect collects from a cluster; nodes are those whose agents' logs are wanted, all if there are none.
func Collect(ctx context.Context, config *rest.Config, nodes []string) (*Bundle, error) {
	cluster, err := client.New(config, client.Options{Scheme: explain.Scheme()})
	if err != nil {
		return nil, err
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	c := collector{&Bundle{Files: map[string][]byte{}, Faults: []string{}}, cluster, clients, nodes}
	version, err := clients.Discovery().ServerVersion()
	if err != nil { // nobody is there
		return nil, err
	}
	c.add(versionFile, version)
	c.status(ctx)
	c.lists(ctx)
	c.logs(ctx)
	if len(c.Faults) > 0 {
		c.Files[faultsFile] = []byte(strings.Join(c.Faults, "\n") + "\n")
	}
	return c.Bundle, nil
}

func (c *collector) fault(what string, err error) {
	c.Faults = append(c.Faults, fmt.Sprintf("%s: %v", what, err))
}

func (c *collector) add(name string, value any) {
	text, err := yaml.Marshal(value)
	if err != nil {
		c.fault(name, err)
		return
	}
	c.Files[name] = text
}

// status is what 'kubectl temper status' and 'explain' say.
func (c *collector) status(ctx context.Context) {
	nodes, hidden, err := fleet.All(ctx, c.cluster, nil, time.Now())
	if err := cmp.Or(err, hidden); err != nil {
		c.fault("status", err)
	}
	if err == nil {
		c.add("status.yaml", nodes)
	}
	answers, invalid, err := explain.OfCluster(ctx, c.cluster, "", nil)
	if err != nil {
		c.fault("explain", err)
		return
	}
	c.add("explain.yaml", answers)
	for _, err := range invalid {
		c.fault("explain", err)
	}
}

// lists are objects: Temper's own, and parts of others'.
func (c *collector) lists(ctx context.Context) {
	for _, of := range []struct {
		name    string
		list    client.ObjectList
		options []client.ListOption
	}{
		{"tierpolicies", &v1alpha1.TierPolicyList{}, nil},
		{"tempernodes", &v1alpha1.TemperNodeList{}, nil},
		{"priorityclasses", &schedulingv1.PriorityClassList{}, nil},
		{"daemonsets", &appsv1.DaemonSetList{}, []client.ListOption{fleet.Agents}},
		{"agents", &corev1.PodList{}, []client.ListOption{fleet.Agents}},
		{"nodes", &corev1.NodeList{}, nil},
		{"namespaces", &corev1.NamespaceList{}, nil},
		{"events", &corev1.EventList{}, nil},
		{"admissionpolicies", admission("ValidatingAdmissionPolicy"), nil},
		{"admissionbindings", admission("ValidatingAdmissionPolicyBinding"), nil},
	} {
		err := c.cluster.List(ctx, of.list, of.options...)
		if err == nil {
			err = trim(of.list)
		}
		if err != nil {
			c.fault(of.name, err)
			continue
		}
		c.add(of.name+".yaml", of.list)
	}
}

// trim leaves out what a report of a fault does not need, and what may be nobody else's business.
func trim(list client.ObjectList) error {
	switch list := list.(type) {
	case *corev1.NodeList:
		for i := range list.Items {
			was := list.Items[i].Status
			info := was.NodeInfo
			info.MachineID, info.SystemUUID, info.BootID = "", "", ""
			list.Items[i].Status = corev1.NodeStatus{Capacity: was.Capacity, Allocatable: was.Allocatable, Conditions: was.Conditions, NodeInfo: info}
		}
	case *corev1.NamespaceList:
		for i := range list.Items {
			maps.DeleteFunc(list.Items[i].Labels, func(name, _ string) bool { return !strings.HasPrefix(name, v1alpha1.GroupVersion.Group+"/") })
		}
	case *corev1.EventList:
		list.Items = slices.DeleteFunc(list.Items, func(e corev1.Event) bool {
			return e.Source.Component != agentName && !strings.HasPrefix(e.InvolvedObject.Name, agentName)
		})
	case *unstructured.UnstructuredList: // admission policies
		list.Items = slices.DeleteFunc(list.Items, func(o unstructured.Unstructured) bool { return !strings.HasPrefix(o.GetName(), "temper-") })
	}
	return meta.EachListItem(list, func(object runtime.Object) error {
		m, err := meta.Accessor(object)
		if err != nil {
			return err
		}
		m.SetManagedFields(nil)
		m.SetAnnotations(nil)
		return nil
	})
}

func admission(kind string) client.ObjectList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: kind + "List"})
	return list
}

// logs are what agents said: those that run, and those that ran before in the same pods.
func (c *collector) logs(ctx context.Context) {
	var pods corev1.PodList
	if err := c.cluster.List(ctx, &pods, fleet.Agents); err != nil {
		c.fault("logs", err)
		return
	}
	for _, pod := range pods.Items {
		if len(c.nodes) > 0 && !slices.Contains(c.nodes, pod.Spec.NodeName) {
			continue
		}
		c.log(ctx, &pod, false)
		if slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.RestartCount > 0 }) {
			c.log(ctx, &pod, true)
		}
	}
}

func (c *collector) log(ctx context.Context, pod *corev1.Pod, previous bool) {
	name := "logs/" + pod.Spec.NodeName + "/" + pod.Name
	if previous {
		name += ".previous"
	}
	stream, err := c.clients.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Previous: previous, Timestamps: true}).Stream(ctx)
	if err != nil {
		c.fault(name, err)
		return
	}
	defer stream.Close()
	text, err := end(stream)
	if err != nil {
		c.fault(name, err)
	}
	c.Files[name+".log"] = text
}

// end is the last of what a reader gives. The API limits only the first.
func end(r io.Reader) ([]byte, error) {
	var kept []byte
	part := make([]byte, 32<<10)
	for {
		n, err := r.Read(part)
		kept = append(kept, part[:n]...)
		if len(kept) > 2*mostLog || err != nil {
			kept = bytes.Clone(kept[max(0, len(kept)-mostLog):])
		}
		if errors.Is(err, io.EOF) {
			return kept, nil
		}
		if err != nil {
			return kept, err
		}
	}
}

// Empty says whether nothing could be had but what anybody may ask.
func (b *Bundle) Empty() bool {
	return !slices.ContainsFunc(b.Names(), func(name string) bool { return name != versionFile && name != faultsFile })
}

// Names are those of the files, in order.
func (b *Bundle) Names() []string { return slices.Sorted(maps.Keys(b.Files)) }

// Write writes an archive, in a folder of its own.
func (b *Bundle) Write(w io.Writer, folder string, at time.Time) error {
	zipped := gzip.NewWriter(w)
	archive := tar.NewWriter(zipped)
	for _, name := range b.Names() {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: folder + "/" + name, Mode: 0o644, Size: int64(len(b.Files[name])), ModTime: at}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(b.Files[name]); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), zipped.Close())
}

// Summary is what is told of a bundle.
type Summary struct {
	File   string   `json:"file"`
	Holds  []string `json:"holds"`
	Faults []string `json:"faults"` // what could not be had
}

// WriteJSON writes a summary.
func (s Summary) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(s)
}
