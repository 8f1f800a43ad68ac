package nodepods

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"temper.dev/temper/internal/base/cgroup"
	"temper.dev/temper/internal/base/fixture"
)

const (
	uid      = "0a1b2c3d-1111-2222-3333-444455556666"
	slice    = "0a1b2c3d_1111_2222_3333_444455556666"
	hash     = "5d41402abc4b2a76b9719d911017c592"
	otherUID = "ffffffff-1111-2222-3333-444455556666"
)

// id is a container's.
var id = strings.Repeat("c", 64)

// below are a cgroup, its ancestors but the root, and those that are one in the other below it.
func below(top string, names ...string) []string {
	list := append(cgroup.Ancestors(top)[1:], top)
	for _, name := range names {
		top += "/" + name
		list = append(list, top)
	}
	return list
}

// layout is a tree of cgroups, and those of pods in it.
type layout struct {
	what    string
	cgroups []string
	want    map[string][]string
}

func TestPodsOfAllLayouts(t *testing.T) {
	checkLayouts(t, []layout{
		{"no kubelet", []string{"/system.slice", "/user.slice"}, map[string][]string{}},
		{"cgroupfs", []string{"/kubepods", "/kubepods/pod" + hash, "/kubepods/burstable", "/kubepods/burstable/pod" + uid,
			"/kubepods/burstable/pod" + uid + "/" + strings.Repeat("c", 64), "/kubepods/besteffort", "/kubepods/besteffort/pod" + otherUID},
			map[string][]string{hash: {"/kubepods/pod" + hash}, uid: {"/kubepods/burstable/pod" + uid}, otherUID: {"/kubepods/besteffort/pod" + otherUID}}},
		{"systemd", []string{"/kubepods.slice", "/kubepods.slice/kubepods-pod" + hash + ".slice", "/kubepods.slice/kubepods-burstable.slice",
			"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + slice + ".slice",
			"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + slice + ".slice/cri-containerd-" + strings.Repeat("c", 64) + ".scope"},
			map[string][]string{hash: {"/kubepods.slice/kubepods-pod" + hash + ".slice"},
				uid: {"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + slice + ".slice"}}},
		{"below another cgroup", []string{"/kubelet.slice", "/kubelet.slice/kubelet-kubepods.slice", "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice",
			"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/kubelet-kubepods-besteffort-pod" + slice + ".slice"},
			map[string][]string{uid: {"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/kubelet-kubepods-besteffort-pod" + slice + ".slice"}}},
		{"in a container", []string{"/docker", "/docker/" + strings.Repeat("d", 64), "/docker/" + strings.Repeat("d", 64) + "/kubelet",
			"/docker/" + strings.Repeat("d", 64) + "/kubelet/kubepods", "/docker/" + strings.Repeat("d", 64) + "/kubelet/kubepods/pod" + uid},
			map[string][]string{uid: {"/docker/" + strings.Repeat("d", 64) + "/kubelet/kubepods/pod" + uid}}},
		{"left by the other driver", []string{"/kubepods", "/kubepods/pod" + uid, "/kubepods.slice", "/kubepods.slice/kubepods-pod" + slice + ".slice"},
			map[string][]string{uid: {"/kubepods/pod" + uid, "/kubepods.slice/kubepods-pod" + slice + ".slice"}}},
		{"a user's own", []string{"/user.slice", "/user.slice/kubepods", "/user.slice/kubepods/pod" + uid}, map[string][]string{}},
		{"what only looks like a pod", []string{"/kubepods", "/kubepods/podman", "/kubepods/pod", "/kubepods/pods-" + uid, "/kubepods/cafe"}, map[string][]string{}},
	})
}

// Runtimes and distributions keep more beside pods and in them, and put the kubelet's tree elsewhere.
func TestPodsOfRuntimesAndPlatforms(t *testing.T) {
	checkLayouts(t, []layout{
		{"a node of kind, seen from its machine", below("/docker/"+id, "kubelet.slice", "kubelet-kubepods.slice", "kubelet-kubepods-pod"+slice+".slice"),
			map[string][]string{uid: {"/docker/" + id + "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" + slice + ".slice"}}},
		{"in a container of Docker with systemd", below("/system.slice/docker-"+id+".scope", "kubelet.slice", "kubelet-kubepods.slice", "kubelet-kubepods-pod"+slice+".slice"),
			map[string][]string{uid: {"/system.slice/docker-" + id + ".scope/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" + slice + ".slice"}}},
		{"in a container of Podman", below("/machine.slice/libpod-"+id+".scope/container", "kubelet.slice", "kubelet-kubepods.slice", "kubelet-kubepods-pod"+slice+".slice"),
			map[string][]string{uid: {"/machine.slice/libpod-" + id + ".scope/container/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" + slice + ".slice"}}},
		{"in a container in a container", below("/docker/"+id+"/docker/"+id, "kubelet", "kubepods", "pod"+uid),
			map[string][]string{uid: {"/docker/" + id + "/docker/" + id + "/kubelet/kubepods/pod" + uid}}},
		{"deeper than is looked", below("/a/b/c/d/e", "kubelet", "kubepods", "pod"+uid), map[string][]string{}},
		{"CRI-O with systemd", append(below("/kubepods.slice", "kubepods-burstable.slice", "kubepods-burstable-pod"+slice+".slice", "crio-"+id+".scope", "container"),
			"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod"+slice+".slice/crio-conmon-"+id+".scope", "/system.slice", "/system.slice/crio.service"),
			map[string][]string{uid: {"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + slice + ".slice"}}},
		{"CRI-O with systemd, conmon beside the pods", append(below("/kubepods.slice", "kubepods-pod"+hash+".slice", "crio-"+id+".scope"),
			"/system.slice", "/system.slice/crio-conmon-"+id+".scope"),
			map[string][]string{hash: {"/kubepods.slice/kubepods-pod" + hash + ".slice"}}},
		{"CRI-O with cgroupfs", append(below("/kubepods", "besteffort", "pod"+uid, "crio-"+id), "/kubepods/besteffort/pod"+uid+"/crio-conmon-"+id),
			map[string][]string{uid: {"/kubepods/besteffort/pod" + uid}}},
		{"Kata, all of the sandbox in the pod", append(below("/kubepods", "burstable", "pod"+uid, "kata_"+id), "/kubepods/burstable/pod"+uid+"/"+id),
			map[string][]string{uid: {"/kubepods/burstable/pod" + uid}}},
		{"Kata with systemd", below("/kubepods.slice", "kubepods-pod"+slice+".slice", "cri-containerd-"+id+".scope"),
			map[string][]string{uid: {"/kubepods.slice/kubepods-pod" + slice + ".slice"}}},
		{"Kata, the overhead beside the pods", append(below("/kubepods", "pod"+uid, "kata_"+id), "/kata_overhead", "/kata_overhead/"+id),
			map[string][]string{uid: {"/kubepods/pod" + uid}}},
		{"k3s as a service", append(below("/kubepods.slice", "kubepods-besteffort.slice", "kubepods-besteffort-pod"+slice+".slice", "cri-containerd-"+id+".scope"),
			"/system.slice", "/system.slice/k3s.service"),
			map[string][]string{uid: {"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" + slice + ".slice"}}},
		{"k3s in a container", append(below("/docker/"+id, "kubepods", "besteffort", "pod"+uid), "/docker/"+id+"/k3s"),
			map[string][]string{uid: {"/docker/" + id + "/kubepods/besteffort/pod" + uid}}},
		{"Talos", append(below("/kubepods", "burstable", "pod"+uid, id), "/init", "/system", "/system/runtime", "/podruntime", "/podruntime/runtime", "/podruntime/kubelet"),
			map[string][]string{uid: {"/kubepods/burstable/pod" + uid}}},
	})
}

func checkLayouts(t *testing.T, layouts []layout) {
	t.Helper()
	for _, c := range layouts {
		tree := tree{root: fixture.Tree(t, c.cgroups...)}
		tree.find()
		got := map[string][]string{}
		for pod, list := range tree.pods(tree.classes()) {
			for _, f := range list {
				got[pod] = append(got[pod], f.cgroup)
				if id, err := cgroup.ID(tree.root, f.cgroup); f.id != id || err != nil {
					t.Errorf("%s: %s has id %d, not %d, %v", c.what, f.cgroup, f.id, id, err)
				}
			}
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}

func TestClassesThatComeLaterAreWatched(t *testing.T) {
	tree := tree{root: fixture.Tree(t, "/kubepods.slice", "/kubepods.slice/kubepods-pod"+slice+".slice", "/kubepods.slice/kubepods-burstable.slice")}
	tree.find()
	if got, want := tree.classes(), []string{"/kubepods.slice", "/kubepods.slice/kubepods-burstable.slice"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Names of any kind are of no pod, or of one whose name they hold; none makes the search fail.
func TestAnyNames(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	pieces := []string{"pod", "kubepods", "-", "_", ".slice", "burstable", "besteffort", uid, slice, hash, "x", "\xff", ":", " "}
	for range 20000 {
		var name strings.Builder
		for range 1 + random.IntN(5) {
			name.WriteString(pieces[random.IntN(len(pieces))])
		}
		cgroup.IsQoSClass(name.String())
		if pod := podOf(name.String()); pod != "" && !strings.Contains(strings.ReplaceAll(name.String(), "_", "-"), "pod"+pod) {
			t.Fatalf("seed %d: %q is of pod %q", seed, name.String(), pod)
		}
	}
}
