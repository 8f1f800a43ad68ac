package cgroup

import (
	"path"
	"strings"
)

// IsKubepods tells whether a kubelet keeps its pods in a cgroup of this name.
func IsKubepods(name string) bool {
	return name == "kubepods" || name == "kubepods.slice" || strings.HasSuffix(name, "-kubepods.slice")
}

// IsQoSClass tells whether a cgroup below kubepods is that of a QoS class.
func IsQoSClass(name string) bool {
	name = strings.TrimSuffix(name, ".slice")
	name = name[strings.LastIndexByte(name, '-')+1:]
	return name == "burstable" || name == "besteffort"
}

// IsKubelets tells whether a kubelet writes cg's files: kubepods, and the QoS classes in it. A pod's cgroup it writes
// when it makes the pod, and when the pod is resized.
func IsKubelets(cg string) bool {
	parent, name := path.Split(cg)
	return IsKubepods(name) || IsQoSClass(name) && IsKubepods(path.Base(parent))
}
