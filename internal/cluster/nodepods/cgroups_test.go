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

func TestPodsOfAllLayouts(t *testing.T) {
	for _, c := range []struct {
		what    string
		cgroups []string
		want    map[string][]string
	}{
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
	} {
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
