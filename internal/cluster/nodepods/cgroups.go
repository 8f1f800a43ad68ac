package nodepods

import (
	"slices"
	"strings"

	"temper.dev/temper/internal/base/cgroup"
	"temper.dev/temper/internal/base/host"
)

// maxDepth is how far below the cgroup root the kubelet's tree is looked for. A kubelet in a container that has the
// node's whole tree before it keeps its pods two levels below the container's cgroup, which Podman's has at the third, and
// a container in a container at the fourth.
const maxDepth = 6

// tree is where a node's kubelets keep their pods' cgroups:
//
//	/kubepods/pod1-2                                     cgroup driver cgroupfs; Guaranteed pods
//	/kubepods/burstable/pod1-2                           the others, by QoS class
//	/kubepods.slice/kubepods-pod1_2.slice                cgroup driver systemd
//	/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1_2.slice
//	/kubelet.slice/kubelet-kubepods.slice/...            with --cgroup-root=/kubelet
//
// What is below a pod's cgroup, a runtime names as it likes, and has the pod's tier.
type tree struct {
	root    host.Root
	tops    []string           // cgroups named kubepods
	strays  map[string][]found // cgroups of pods outside of them, by pod
	outside map[uint64]string  // other cgroups outside of them, by id
}

// find looks for the kubelets' trees, and at what is beside them.
func (t *tree) find() {
	t.tops, t.strays, t.outside = nil, map[string][]found{}, map[uint64]string{}
	if id, err := cgroup.ID(t.root, "/"); err == nil {
		t.outside[id] = "/"
	}
	t.descend("/", maxDepth)
	slices.Sort(t.tops)
}

func (t *tree) descend(cg string, depth int) {
	for _, c := range cgroup.Children(t.root, cg) {
		name, child := c.Name, c.Path(cg)
		switch {
		case name == "user.slice":
		case cgroup.IsKubepods(name):
			if cgroup.Owned(t.root, child) { // whoever has cgroups to himself calls them as he likes
				t.tops = append(t.tops, child)
			}
		case podOf(name) != "":
		case strayOf(name) != "":
			if cgroup.Owned(t.root, child) {
				t.strays[strayOf(name)] = append(t.strays[strayOf(name)], found{child, c.ID})
			}
		default:
			t.outside[c.ID] = child
			if depth > 1 {
				t.descend(child, depth-1)
			}
		}
	}
}

// classes are the cgroups whose children are pods'.
func (t *tree) classes() (list []string) {
	for _, top := range t.tops {
		list = append(list, top)
		for _, c := range cgroup.Children(t.root, top) {
			if cgroup.IsQoSClass(c.Name) {
				list = append(list, c.Path(top))
			}
		}
	}
	return list
}

// found is a pod's cgroup that is there.
type found struct {
	cgroup string
	id     uint64
}

// pods are the cgroups of pods that exist, by what the kubelet calls the pod: its UID, or a static pod's hash. A pod has
// one, but another may be left of a time when the kubelet had another cgroup driver.
func (t *tree) pods(classes []string) map[string][]found {
	pods := map[string][]found{}
	for _, parent := range classes {
		for _, c := range cgroup.Children(t.root, parent) {
			if pod := podOf(c.Name); pod != "" {
				pods[pod] = append(pods[pod], found{c.Path(parent), c.ID})
			}
		}
	}
	return pods
}

// straying are the strays of a pod that are still there.
func (t *tree) straying(pod string) (list []found) {
	for _, f := range t.strays[pod] {
		if id, err := cgroup.ID(t.root, f.cgroup); err == nil && id == f.id {
			list = append(list, f)
		}
	}
	return list
}

// strayOf is the pod of a container whose runtime read the kubelet's word for a pod's cgroup as that of the other cgroup
// driver: such a cgroup is named PARENT:PREFIX:CONTAINER, and lies wherever the runtime does.
func strayOf(name string) string {
	parent, _, isStray := strings.Cut(name, ":")
	if !isStray {
		return ""
	}
	return podOf(parent)
}

// podOf is the pod that a cgroup's name says it is of, "" if it says none. systemd takes a dash for a slash, so that
// names of slices have underscores where UIDs have dashes.
func podOf(name string) string {
	slice, isSlice := strings.CutSuffix(name, ".slice")
	if !isSlice {
		pod, _ := strings.CutPrefix(name, "pod")
		if pod == name || !isID(pod) {
			return ""
		}
		return pod
	}
	last := slice[strings.LastIndexByte(slice, '-')+1:]
	pod, isPod := strings.CutPrefix(last, "pod")
	pod = strings.ReplaceAll(pod, "_", "-")
	if !isPod || !isID(pod) {
		return ""
	}
	return pod
}

// UIDs and hashes have between so many characters.
const shortestID, longestID = 16, 64

// isID tells UIDs and hashes from other words: they are hexadecimal, with dashes, and not short.
func isID(text string) bool {
	return len(text) >= shortestID && len(text) <= longestID && strings.Trim(text, "0123456789abcdef-") == ""
}
