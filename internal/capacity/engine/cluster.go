package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"temper.dev/temper/internal/capacity/snapshot"
)

// cluster is the scheduler's view of nodes and their pods. kube-scheduler's own (backend/cache) is filled by events only
// and does not take back what was done, which a planner does all the time: hence a journal.
type cluster struct {
	infos map[string]*framework.NodeInfo
	list  []fwk.NodeInfo // in the order in which nodes are looked at
	names []string       // sorted, so that a seed always shuffles the same list
	pods  map[*corev1.Pod]*framework.PodInfo
	// How many pods use a claim, by namespace/name.
	claims map[string]int
	// Nodes that have pods with such terms, built when somebody asks; nil: to be built.
	affine, antiAffine []fwk.NodeInfo
	journal            []func()
}

var _ fwk.SharedLister = &cluster{}

func newCluster(s *snapshot.Snapshot) (*cluster, error) {
	c := &cluster{infos: map[string]*framework.NodeInfo{}, pods: map[*corev1.Pod]*framework.PodInfo{}, claims: map[string]int{}}
	images := imagesOf(s.Nodes)
	for _, node := range s.Nodes {
		info := framework.NewNodeInfo()
		info.SetNode(node)
		info.ImageStates = images.of(node)
		c.infos[node.Name] = info
		c.names = append(c.names, node.Name)
	}
	slices.Sort(c.names)
	for _, pod := range s.Pods {
		if pod.Spec.NodeName == "" || snapshot.Ended(pod) {
			continue
		}
		if err := c.bind(pod, pod.Spec.NodeName); err != nil {
			return nil, err
		}
	}
	c.journal = nil
	return c, nil
}

// order shuffles the nodes. kube-scheduler takes them from its cache zone by zone, in an order that depends on when each
// was added.
func (c *cluster) order(chance *rand.Rand) {
	c.list = c.list[:0]
	for _, name := range c.names {
		c.list = append(c.list, c.infos[name])
	}
	chance.Shuffle(len(c.list), func(i, j int) { c.list[i], c.list[j] = c.list[j], c.list[i] })
	c.affine, c.antiAffine = nil, nil
}

func (c *cluster) undo() {
	for _, back := range slices.Backward(c.journal) {
		back()
	}
	c.journal = c.journal[:0]
}

func (c *cluster) cordon(name string, on bool) {
	info := c.infos[name]
	before := info.Node()
	if before.Spec.Unschedulable == on {
		return
	}
	node := before.DeepCopy()
	node.Spec.Unschedulable = on
	info.SetNode(node)
	c.journal = append(c.journal, func() { info.SetNode(before) })
}

func (c *cluster) bind(pod *corev1.Pod, name string) error {
	info, ok := c.infos[name]
	if !ok {
		return fmt.Errorf("pod %s cannot be on node %s: the snapshot has no such node", snapshot.Key(pod), name)
	}
	podInfo, err := c.podInfo(pod)
	if err != nil {
		return err
	}
	c.add(info, podInfo)
	c.journal = append(c.journal, func() { c.drop(info, podInfo) })
	return nil
}

func (c *cluster) remove(pod *corev1.Pod, name string) error {
	info, ok := c.infos[name]
	if !ok || !slices.ContainsFunc(info.Pods, func(p fwk.PodInfo) bool { return p.GetPod() == pod }) {
		return fmt.Errorf("pod %s is not on node %s", snapshot.Key(pod), name)
	}
	podInfo := c.pods[pod]
	c.drop(info, podInfo)
	c.journal = append(c.journal, func() { c.add(info, podInfo) })
	return nil
}

// podInfo is what the scheduler has parsed of a pod, once for all of the pod's moves.
func (c *cluster) podInfo(pod *corev1.Pod) (*framework.PodInfo, error) {
	if known, ok := c.pods[pod]; ok {
		return known, nil
	}
	parsed, err := framework.NewPodInfo(pod)
	if err != nil {
		return nil, fmt.Errorf("pod %s: %w; no API server admits such a pod", snapshot.Key(pod), err)
	}
	c.pods[pod] = parsed
	return parsed, nil
}

func (c *cluster) add(info *framework.NodeInfo, pod *framework.PodInfo) {
	info.AddPodInfo(pod)
	c.count(pod, 1)
}

func (c *cluster) drop(info *framework.NodeInfo, pod *framework.PodInfo) {
	// It fails where the pod is not on the node, which remove and the journal rule out.
	if err := info.RemovePod(klog.Logger{}, pod.Pod); err != nil {
		panic(err)
	}
	c.count(pod, -1)
}

// count keeps what is known of all pods together.
func (c *cluster) count(pod *framework.PodInfo, by int) {
	if len(pod.RequiredAffinityTerms)+len(pod.RequiredAntiAffinityTerms)+len(pod.PreferredAffinityTerms)+len(pod.PreferredAntiAffinityTerms) > 0 {
		c.affine, c.antiAffine = nil, nil
	}
	for _, v := range pod.Pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			c.claims[framework.GetNamespacedName(pod.Pod.Namespace, v.PersistentVolumeClaim.ClaimName)] += by
		}
	}
}

func (c *cluster) NodeInfos() fwk.NodeInfoLister           { return c }
func (c *cluster) StorageInfos() fwk.StorageInfoLister     { return c }
func (c *cluster) PodGroupStates() fwk.PodGroupStateLister { return nil }

func (c *cluster) List() ([]fwk.NodeInfo, error) { return c.list, nil }

func (c *cluster) Get(name string) (fwk.NodeInfo, error) {
	if info, ok := c.infos[name]; ok {
		return info, nil
	}
	return nil, fmt.Errorf("node %s is not in the snapshot", name)
}

func (c *cluster) HavePodsWithAffinityList() ([]fwk.NodeInfo, error) {
	if c.affine == nil {
		c.affine = c.having(func(n fwk.NodeInfo) bool { return len(n.GetPodsWithAffinity()) > 0 })
	}
	return c.affine, nil
}

func (c *cluster) HavePodsWithRequiredAntiAffinityList() ([]fwk.NodeInfo, error) {
	if c.antiAffine == nil {
		c.antiAffine = c.having(func(n fwk.NodeInfo) bool { return len(n.GetPodsWithRequiredAntiAffinity()) > 0 })
	}
	return c.antiAffine, nil
}

// having is never nil, which would mean that it is to be built.
func (c *cluster) having(what func(fwk.NodeInfo) bool) []fwk.NodeInfo {
	nodes := []fwk.NodeInfo{}
	for _, info := range c.list {
		if what(info) {
			nodes = append(nodes, info)
		}
	}
	return nodes
}

func (c *cluster) IsPVCUsedByPods(key string) bool { return c.claims[key] > 0 }

// images are the nodes that have an image, by one of its names.
type images map[string]sets.Set[string]

func imagesOf(nodes []*corev1.Node) images {
	on := images{}
	for _, node := range nodes {
		for _, image := range node.Status.Images {
			for _, name := range image.Names {
				if on[name] == nil {
					on[name] = sets.New[string]()
				}
				on[name].Insert(node.Name)
			}
		}
	}
	return on
}

func (on images) of(node *corev1.Node) map[string]*fwk.ImageStateSummary {
	states := map[string]*fwk.ImageStateSummary{}
	for _, image := range node.Status.Images {
		for _, name := range image.Names {
			states[name] = &fwk.ImageStateSummary{Size: image.SizeBytes, NumNodes: on[name].Len()}
		}
	}
	return states
}
