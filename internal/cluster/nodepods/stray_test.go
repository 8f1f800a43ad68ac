package nodepods

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"temper.dev/temper/internal/base/fixture"
	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/node/agent"
)

// source is one that knows a background and a critical pod, on a node with these cgroups.
func source(t *testing.T, cgroups ...string) *Source {
	t.Helper()
	root := fixture.Tree(t, cgroups...)
	s := &Source{root: root, tree: tree{root: root}, unknown: map[string]time.Time{}, absentSince: map[string]time.Time{},
		known: &Known{Pods: map[string]Pod{uid: {Name: "shop/batch", Tier: tier.Background}, otherUID: {Name: "shop/web", Tier: tier.Critical}}}}
	s.tree.find()
	return s
}

// Where the runtime has the other cgroup driver, a container lies beside the runtime: in system.slice it would be system.
func TestStraysFollowTheirPods(t *testing.T) {
	const in = "/system.slice/containerd.service/"
	systemd, cgroupfs := "kubepods-besteffort-pod"+slice+".slice:cri-containerd:c1", "pod"+otherUID+":cri-containerd:c2"
	for _, c := range []struct {
		name    string
		cgroups []string
		want    map[string]tier.Tier
	}{
		{"none", []string{in + "x"}, map[string]tier.Tier{}},
		{"the kubelet's driver is systemd", []string{in + systemd}, map[string]tier.Tier{in + systemd: tier.Background}},
		{"the kubelet's driver is cgroupfs", []string{"/system.slice/" + cgroupfs}, map[string]tier.Tier{"/system.slice/" + cgroupfs: tier.Critical}},
		{"in the kubelet's tree", []string{"/kubepods/burstable/" + cgroupfs}, map[string]tier.Tier{}},
		{"of no known pod", []string{in + "pod" + hash + ":cri-containerd:c3"}, map[string]tier.Tier{}},
		{"a user's", []string{"/user.slice/" + cgroupfs}, map[string]tier.Tier{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := source(t, c.cgroups...)
			var w agent.Wanted
			s.addStrays(&w)
			got := map[string]tier.Tier{}
			for _, m := range w.Members {
				got[m.Cgroup] = m.Tier
			}
			if len(got) != len(c.want) || len(w.Problems) != min(len(c.want), 1) {
				t.Errorf("members %v, problems %q; want %v, one problem where there are any", got, w.Problems, c.want)
			}
			for cg, want := range c.want {
				if got[cg] != want || !strings.Contains(w.Problems[0], cg+"; "+sameDriver) {
					t.Errorf("%s is %s, problems %q; want %s, and a problem that names it", cg, got[cg], w.Problems, want)
				}
			}
		})
	}
}

func TestAStrayThatIsGoneIsNoMember(t *testing.T) {
	const stray = "/system.slice/pod" + uid + ":cri-containerd:c1"
	s := source(t, stray)
	if err := os.RemoveAll(s.root.Cgroup(stray)); err != nil {
		t.Fatal(err)
	}
	var w agent.Wanted
	if s.addStrays(&w); len(w.Members)+len(w.Problems) != 0 {
		t.Errorf("members %v, problems %q; want none", w.Members, w.Problems)
	}
}

// A pod that runs has a process in its cgroup. If not, its tier is not in force, whatever its cgroup's is.
func TestPodsWithoutProcessesAreTold(t *testing.T) {
	const cg = "/kubepods.slice/kubepods-pod" + slice + ".slice"
	const events = "/sys/fs/cgroup" + cg + "/cgroup.events"
	now := time.Now()
	running := func() map[string]string { return map[string]string{uid: "shop/batch"} }
	for _, c := range []struct {
		name    string
		cgroups []string
		events  string
		running map[string]string
		later   time.Duration
		want    string // in the problem; "": none
	}{
		{"processes", []string{cg}, "populated 1\n", running(), time.Hour, ""},
		{"no process, for a moment", []string{cg}, "populated 0\n", running(), unknownAfter - 1, ""},
		{"no process", []string{cg}, "populated 0\n", running(), unknownAfter, "1 pods run, and have no process in /kubepods.slice;"},
		{"no pod that runs", []string{cg}, "populated 0\n", map[string]string{}, time.Hour, ""},
		{"no cgroup", []string{"/kubepods.slice"}, "", running(), unknownAfter, "no process in /kubepods.slice;"},
		{"no tree", nil, "", running(), unknownAfter, "there is none within 6 levels"},
		{"a stray", []string{"/system.slice/pod" + uid + ":cri-containerd:c1"}, "", running(), time.Hour, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := source(t, c.cgroups...)
			if c.events != "" {
				fixture.Write(t, s.root, events, c.events)
			}
			for _, at := range []time.Time{now, now.Add(c.later)} {
				again := map[string]string{}
				for id, name := range c.running {
					again[id] = name
				}
				s.lookForAbsent(again, at)
			}
			var w agent.Wanted
			s.tellOfAbsent(&w)
			if got := strings.Join(w.Problems, "\n"); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("problems %q; want one with %q, none if that is empty", got, c.want)
			}
		})
	}
}

func TestServicesAreSystem(t *testing.T) {
	const kubelet = "/runtime.slice/kubelet.service"
	systemSlice := agent.Member{Cgroup: "/system.slice", Tier: tier.System, Source: "config"}
	for _, c := range []struct {
		name    string
		cgroups []string
		at      string
		events  string
		members []agent.Member // by the node's own configuration
		want    string         // its tier by a member of its own; "": there is none
		problem string
	}{
		{"in a slice of its own", []string{kubelet}, kubelet, "", []agent.Member{systemSlice}, "system", ""},
		{"in system.slice", []string{"/system.slice/kubelet.service"}, "/system.slice/kubelet.service", "", []agent.Member{systemSlice}, "", ""},
		{"beside pods", []string{"/kubelet", "/kubelet/kubepods"}, "/kubelet", "", nil, "", "the kubelet runs in /kubelet, which holds pods, too, and so is standard there"},
		{"in the root", []string{kubelet}, "/", "", nil, "", "the kubelet runs in /, which holds pods"},
		{"moved", []string{kubelet}, kubelet, "populated 0\n", nil, "", "the kubelet is not in " + kubelet + " any more"},
		{"listed as critical", []string{kubelet}, kubelet, "", []agent.Member{{Cgroup: kubelet, Tier: tier.Critical, Source: "config"}}, "critical",
			kubelet + " is critical by config and system by the kubelet: critical it is"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := source(t, c.cgroups...)
			if c.events != "" {
				fixture.Write(t, s.root, "/sys/fs/cgroup"+c.at+"/cgroup.events", c.events)
			}
			s.services = []service{{"the kubelet", "it listens", c.at, 1}}
			var w agent.Wanted
			for _, m := range c.members {
				w.Add(m)
			}
			s.addServices(&w)
			got := ""
			if i := slices.IndexFunc(w.Members, func(m agent.Member) bool { return m.Cgroup == c.at }); i >= 0 {
				got = w.Members[i].Tier.String()
			}
			problems := strings.Join(w.Problems, "\n")
			if got != c.want || (problems == "") != (c.problem == "") || !strings.Contains(problems, c.problem) {
				t.Errorf("tier %q, problems %q; want %q, %q", got, problems, c.want, c.problem)
			}
		})
	}
}

func TestCgroupOfAProcess(t *testing.T) {
	const cg = "/runtime.slice/containerd.service"
	for _, c := range []struct {
		name, says, processes, want string
	}{
		{"seen from the root", "0::" + cg + "\n", "7\n42\n", cg},
		{"seen from a pod", "0::/../../.." + cg + "\n", "42\n", cg},
		{"beside cgroup v1", "1:cpu:/x\n0::" + cg + "\n", "42\n", cg},
		{"not in it", "0::" + cg + "\n", "43\n", ""},
		{"gone", "0::" + cg + " (deleted)\n", "", ""},
		{"no cgroup v2", "1:cpu:/x\n", "42\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := fixture.Tree(t, cg)
			fixture.Write(t, root, "/proc/42/cgroup", c.says)
			fixture.Write(t, root, "/sys/fs/cgroup"+cg+"/cgroup.procs", c.processes)
			if got := cgroupOf(root, 42); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestTheNearestMemberDecides(t *testing.T) {
	members := []agent.Member{{Cgroup: "/a/b", Tier: tier.Critical}, {Cgroup: "/a", Tier: tier.System}, {Cgroup: "/a/b/c/d", Tier: tier.Background}}
	for cg, want := range map[string]tier.Tier{"/a": tier.System, "/a/x": tier.System, "/a/b": tier.Critical, "/a/b/c": tier.Critical, "/ab": tier.Standard, "/": tier.Standard} {
		if got := tierBy(members, cg); got != want {
			t.Errorf("%s is %s, want %s", cg, got, want)
		}
	}
}
