package observe

import (
	"testing"

	"temper.dev/temper/internal/base/fixture"
)

func TestTasks(t *testing.T) {
	root := fixture.Node(t, fixture.Files{
		"/proc/1/task/1/cgroup":   "0::/\n",
		"/proc/1/task/1/status":   "Name:\tinit\nCpus_allowed_list:\t0-3\n",
		"/proc/20/task/20/cgroup": "1:name=systemd:/x\n0::/web/api/deep\n",
		"/proc/20/task/20/status": "Name:\tapi\nCpus_allowed:\tf\nCpus_allowed_list:\t0-1\n",
		"/proc/20/task/21/cgroup": "0::/web\n",
		"/proc/20/task/21/status": "Cpus_allowed_list:\t2\n",
		"/proc/30/task/30/cgroup": "0::/webbing\n",
		"/proc/30/task/30/status": "Cpus_allowed_list:\t2\n",
		"/proc/40/task/40/cgroup": "0::/batch (deleted)\n",
		"/proc/40/task/40/status": "Cpus_allowed_list:\t3\n",
		"/proc/50/task/50/exe":    "it is gone before its cgroup is read",
	})
	tasks := Tasks{Root: root, RoleOf: Cgroups(map[string]Role{"/web": Higher, "/batch": Background}), Found: map[int]Task{}}
	if err := tasks.Look(); err != nil {
		t.Fatal(err)
	}
	want := map[int]struct {
		role Role
		cpus []int
	}{1: {Other, nil}, 20: {Higher, []int{0, 1}}, 21: {Higher, []int{2}}, 30: {Other, nil}, 40: {Background, []int{3}}}
	if len(tasks.Found) != len(want) {
		t.Errorf("found %v", tasks.Found)
	}
	if name := tasks.Found[20].Name; name != "api" {
		t.Errorf("20 is named %q", name)
	}
	for pid, w := range want {
		got := tasks.Found[pid]
		if got.Role != w.role {
			t.Errorf("%d has role %d, want %d", pid, got.Role, w.role)
		}
		for cpu := range 4 {
			may := false
			for _, c := range w.cpus {
				may = may || c == cpu
			}
			if got.CPUs.Contains(cpu) != may {
				t.Errorf("%d on CPU %d: %v", pid, cpu, !may)
			}
		}
	}
}
