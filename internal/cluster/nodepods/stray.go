package nodepods

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"temper.dev/temper/internal/base/cgroup"
	"temper.dev/temper/internal/node/agent"
)

// sameDriver is the cure where containers are not where the kubelet has made their pod's cgroup.
const sameDriver = "give the kubelet and the container runtime the same cgroup driver (cgroupDriver, SystemdCgroup)"

// addStrays has containers outside of the kubelets' trees follow their pods: there they would have the tier of the runtime,
// which is system.
func (s *Source) addStrays(w *agent.Wanted) {
	var names []string
	for _, id := range slices.Sorted(maps.Keys(s.tree.strays)) {
		pod, known := s.known.Pods[id]
		if !known {
			continue
		}
		for _, cg := range s.tree.straying(id) {
			w.Add(agent.Member{Cgroup: cg.cgroup, ID: cg.id, Tier: pod.Tier, Limits: pod.Limits, Source: "pod", Pod: pod.Name, Reason: pod.Reason})
			names = append(names, pod.Name+" in "+cg.cgroup)
		}
	}
	if len(names) > 0 {
		w.Problems = append(w.Problems, fmt.Sprintf("%d containers run outside of their pod's cgroup, where their tier reaches them seconds after their start, and the pod's CPU limit does not: %s; %s",
			len(names), names[0], sameDriver))
	}
}

// lookForAbsent keeps which pods have run for long without a process where a kubelet keeps pods.
func (s *Source) lookForAbsent(running map[string]string, now time.Time) {
	there := s.tree.pods(s.tree.classes())
	s.absent = nil
	for _, id := range slices.Sorted(maps.Keys(running)) {
		if slices.ContainsFunc(there[id], func(f found) bool { return cgroup.Populated(s.root, f.cgroup) }) || len(s.tree.straying(id)) > 0 {
			delete(running, id)
			continue
		}
		if _, before := s.absentSince[id]; !before {
			s.absentSince[id] = now
		}
		if now.Sub(s.absentSince[id]) >= unknownAfter {
			s.absent = append(s.absent, running[id])
		}
	}
	maps.DeleteFunc(s.absentSince, func(id string, _ time.Time) bool { return running[id] == "" })
}

// tellOfAbsent says whose tiers are not in force, whatever status says of them.
func (s *Source) tellOfAbsent(w *agent.Wanted) {
	if len(s.absent) == 0 {
		return
	}
	where := "in " + strings.Join(s.tree.tops, ", ")
	if len(s.tree.tops) == 0 {
		where = fmt.Sprintf("in a cgroup named kubepods, of which there is none within %d levels (--cgroups-per-qos, --cgroup-root)", maxDepth)
	}
	w.Problems = append(w.Problems, fmt.Sprintf("%d pods run, and have no process %s; they have the tier of the cgroup that they are in: %s; %s",
		len(s.absent), where, slices.Min(s.absent), sameDriver))
}

// running are the names of pods that run and are to go on, by what the kubelet calls them.
func (r *reader) running(ctx context.Context) (map[string]string, error) {
	var list corev1.PodList
	if err := r.cache.List(ctx, &list); err != nil {
		return nil, err
	}
	names := map[string]string{}
	for i := range list.Items {
		if pod := &list.Items[i]; pod.Status.Phase == corev1.PodRunning {
			id, _ := idOf(pod)
			names[id] = pod.Namespace + "/" + pod.Name
		}
	}
	return names, nil
}
