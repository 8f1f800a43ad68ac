package advice

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podresource "k8s.io/component-helpers/resource"

	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/capacity/plan"
	"temper.dev/temper/internal/capacity/snapshot"
)

// Shape is a kind of node, and how many of them the pods' requests come to: by arithmetic, for each resource on its own, as
// if pods could be cut in pieces. Constraints of pods may take more.
type Shape struct {
	CPUs      float64 `json:"cpus"` // allocatable, as all of them
	MemoryGiB float64 `json:"memoryGiB"`
	Pods      int     `json:"pods"`
	Have      int     `json:"have"` // nodes of this shape that the snapshot has

	Nodes      int    `json:"nodes"` // that are needed; 0: none would do, and Why says why
	ByCPU      int    `json:"byCPU"`
	ByMemory   int    `json:"byMemory"`
	ByPods     int    `json:"byPods"`
	ByCritical int    `json:"byCritical"` // critical pods in physical cores but one; half of the CPUs are taken for cores
	Binds      string `json:"binds"`      // cpu, memory, pods or critical
	Why        string `json:"why,omitempty"`

	cores int // physical ones
}

const (
	mib = 1 << 20
	gib = 1 << 30
)

// ParseShape reads CPUSxMEMORY or CPUSxMEMORYxPODS, as in 16x64Gi.
func ParseShape(text string) (Shape, error) {
	fail := func() (Shape, error) {
		return Shape{}, fmt.Errorf("shape %q is not CPUSxMEMORY or CPUSxMEMORYxPODS, as in 16x64Gi or 16x64Gix110", text)
	}
	parts := strings.Split(text, "x")
	if len(parts) < 2 || len(parts) > 3 {
		return fail()
	}
	s := Shape{Pods: 110}
	var err error
	if s.CPUs, err = strconv.ParseFloat(parts[0], 64); err != nil || !(s.CPUs > 0 && s.CPUs < 1e6) {
		return fail()
	}
	memory, err := resource.ParseQuantity(parts[1])
	if err != nil || memory.Value() < mib { // a number alone would be bytes
		return fail()
	}
	s.MemoryGiB = float64(memory.Value()) / gib
	if len(parts) == 3 {
		if s.Pods, err = strconv.Atoi(parts[2]); err != nil || s.Pods <= 0 {
			return fail()
		}
	}
	s.cores = int(s.CPUs) / 2
	return s, nil
}

// want is what pods ask for: thousandths of CPUs, bytes, and places.
type want struct{ cpu, memory, pods, critical float64 }

func (w *want) add(o want) {
	w.cpu, w.memory, w.pods, w.critical = w.cpu+o.cpu, w.memory+o.memory, w.pods+o.pods, w.critical+o.critical
}

// largest is the most of each, which may be of different pods.
func (w *want) largest(o want) {
	w.cpu, w.memory, w.critical = max(w.cpu, o.cpu), max(w.memory, o.memory), max(w.critical, o.critical)
}

// shapes are those of the nodes that there are, and those to try, each with how many of them the pods take.
func shapes(s *snapshot.Snapshot, tiers *plan.Tiers, try []Shape) []Shape {
	all, daemons, largest := wants(s, tiers)
	candidates := []Shape{}
	for _, node := range s.Nodes {
		shape := shapeOf(node, s)
		i := slices.IndexFunc(candidates, shape.same)
		if i < 0 {
			candidates, i = append(candidates, shape), len(candidates)
		}
		candidates[i].Have++
	}
	for _, shape := range try {
		if !slices.ContainsFunc(candidates, shape.same) {
			candidates = append(candidates, shape)
		}
	}
	if len(candidates) == 0 {
		candidates = usual(all)
	}
	for i := range candidates {
		candidates[i].count(all, daemons, largest)
	}
	slices.SortFunc(candidates, func(a, b Shape) int {
		return cmp.Or(cmp.Compare(a.CPUs, b.CPUs), cmp.Compare(a.MemoryGiB, b.MemoryGiB))
	})
	return candidates
}

func (s Shape) same(o Shape) bool {
	return s.CPUs == o.CPUs && s.MemoryGiB == o.MemoryGiB && s.Pods == o.Pods && s.cores == o.cores
}

func shapeOf(node *corev1.Node, s *snapshot.Snapshot) Shape {
	of := node.Status.Allocatable
	cores, known := s.Cores[node.Name]
	if !known {
		cores = int(node.Status.Capacity.Cpu().Value() / 2)
	}
	return Shape{CPUs: cpus(of.Cpu().MilliValue()), MemoryGiB: float64(of.Memory().Value()) / gib, Pods: int(of.Pods().Value()), cores: cores}
}

// usual are shapes to choose from where there is no node: with so much memory a CPU, of what is usually for sale, as the
// pods ask for.
func usual(all want) (shapes []Shape) {
	perCPU := 8.0
	for _, sold := range []float64{4, 2} {
		if all.memory/gib <= sold*all.cpu/1000 {
			perCPU = sold
		}
	}
	for _, n := range []int{4, 8, 16, 32} {
		shapes = append(shapes, Shape{CPUs: float64(n), MemoryGiB: float64(n) * perCPU, Pods: 110, cores: n / 2})
	}
	return shapes
}

// wants is what all pods ask for that can be anywhere, what those ask for that each node has, and the largest pod.
func wants(s *snapshot.Snapshot, tiers *plan.Tiers) (all, daemons, largest want) {
	workload := s.Workloads()
	ofEach := map[snapshot.Workload]want{} // of DaemonSets and static pods: the largest of their pods
	for _, pod := range s.Pods {
		if snapshot.Ended(pod) {
			continue
		}
		requests := podresource.PodRequests(pod, podresource.PodResourcesOptions{})
		w := want{cpu: float64(requests.Cpu().MilliValue()), memory: float64(requests.Memory().Value()), pods: 1}
		if tiers.Of(pod).Tier == tier.Critical {
			w.critical = tiers.Demand(pod)
		}
		if owner := metav1.GetControllerOf(pod); owner != nil && (owner.Kind == "DaemonSet" || owner.Kind == "Node") {
			of := workload(pod)
			if owner.Kind == "Node" { // a static pod, whose name ends with its node's
				of.Name = strings.TrimSuffix(pod.Name, "-"+owner.Name)
			}
			most := ofEach[of]
			most.largest(w)
			most.pods = 1
			ofEach[of] = most
			continue
		}
		all.add(w)
		largest.largest(w)
	}
	for _, w := range ofEach {
		daemons.add(w)
	}
	return all, daemons, largest
}

// count is how many nodes of the shape the pods take, beside what each node has of its own.
func (s *Shape) count(all, daemons, largest want) {
	room := want{s.CPUs*1000 - daemons.cpu, s.MemoryGiB*gib - daemons.memory, float64(s.Pods) - daemons.pods,
		float64(max(0, s.cores-1))*1000 - daemons.critical}
	s.Why = ""
	for _, r := range []struct {
		what                string
		asked, most, offers float64
		by                  *int
	}{
		{"cpu", all.cpu, largest.cpu, room.cpu, &s.ByCPU},
		{"memory", all.memory, largest.memory, room.memory, &s.ByMemory},
		{"pods", all.pods, 1, room.pods, &s.ByPods},
		{"critical", all.critical, largest.critical, room.critical, &s.ByCritical},
	} {
		if r.asked == 0 {
			continue
		}
		if r.most > r.offers {
			s.Why, s.Binds = fmt.Sprintf("one pod wants more %s than such a node has beside its own pods", r.what), r.what
			continue
		}
		*r.by = int(math.Ceil(r.asked/r.offers - 1e-9))
		if *r.by > s.Nodes && s.Why == "" {
			s.Nodes, s.Binds = *r.by, r.what
		}
	}
	if s.Why != "" {
		s.Nodes = 0
	}
}
