package overcommit

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"

	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/capacity/snapshot"
)

// What became of a pod.
const (
	stateLowered = "lowered"
	stateLeft    = "left alone"
	stateMissed  = "missed"
	stateChanged = "changed"
)

// Report is what overcommit has done in a cluster.
type Report struct {
	Pods []Pod `json:"pods"`
	// What the pods asked for, what they request, and the difference.
	AskedCPUs     float64 `json:"askedCPUs"`
	RequestedCPUs float64 `json:"requestedCPUs"`
	GivenCPUs     float64 `json:"givenCPUs"`
	Guard         *Guard  `json:"guard,omitempty"` // where a CapacityPolicy keeps the policy
}

// Guard is what the guard of a CapacityPolicy has found, and what it lets the policy do.
type Guard struct {
	Reason        string `json:"reason"`
	Message       string `json:"message"`
	FactorPercent int32  `json:"factorPercent"` // of its CPU request, that a new pod is left with
}

// Pod is one that takes part in overcommit by its namespace.
type Pod struct {
	Namespace     string  `json:"namespace"`
	Name          string  `json:"name"`
	State         string  `json:"state"`
	AskedCPUs     float64 `json:"askedCPUs"`
	RequestedCPUs float64 `json:"requestedCPUs"`
	Why           string  `json:"why,omitempty"`
}

// Report says of each pod that has not ended what became of its requests.
func (r *Rules) Report(s *snapshot.Snapshot, limits []*corev1.LimitRange) Report {
	report := Report{Pods: []Pod{}}
	namespaces := r.namespaces(s, limits)
	var asked, requested int64
	for _, pod := range s.Pods {
		in, ok := namespaces[pod.Namespace]
		if !ok || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		line, before, after := r.look(pod, in)
		report.Pods = append(report.Pods, line)
		asked += before
		requested += after
	}
	report.AskedCPUs, report.RequestedCPUs, report.GivenCPUs = cpus(asked), cpus(requested), cpus(asked-requested)
	return report
}

// namespaces are those that take part and that there are.
func (r *Rules) namespaces(s *snapshot.Snapshot, limits []*corev1.LimitRange) map[string]Namespace {
	found := map[string]Namespace{}
	for _, n := range s.Namespaces {
		if !slices.Contains(r.Namespaces, n.Name) {
			continue
		}
		in := Namespace{Name: n.Name, Labels: n.Labels}
		for _, l := range limits {
			if l.Namespace == n.Name {
				in.LimitRanges = append(in.LimitRanges, *l)
			}
		}
		found[n.Name] = in
	}
	return found
}

// look says what became of a pod, and what it asked for and requests, in mCPU.
func (r *Rules) look(pod *corev1.Pod, in Namespace) (line Pod, before, after int64) {
	admitted, outcome := r.Admit(unbound(pod), in)
	now := read(pod).total()
	line = Pod{Namespace: pod.Namespace, Name: pod.Name, State: stateLeft, Why: outcome.Left}
	before, after = now, now
	note := pod.Annotations[OriginalAnnotation]
	repair := r.Repair(pod, in)
	switch {
	case note != "" && repair.Step != Done:
		line.State, line.Why = stateMissed, "its repair was interrupted"
	case note != "" && outcome.Left == "" && outcome.After == now && note == admitted.Annotations[OriginalAnnotation]:
		line.State, before = stateLowered, outcome.Before
	case note != "":
		line.State, line.Why = stateChanged, fmt.Sprintf("it says that factor %s was applied to %s, and the policy makes something else of it: it was resized, or the policy has changed",
			pod.Annotations[FactorAnnotation], note)
	case outcome.Left == "":
		line.State, line.Why = stateMissed, "it was created while the policy was not in force"
		if repair.Left != "" {
			line.Why += "; repair leaves it alone: " + repair.Left
		}
	}
	line.AskedCPUs, line.RequestedCPUs = cpus(before), cpus(after)
	return line, before, after
}

func cpus(milli int64) float64 { return float64(milli) / 1000 }

// Write prints the report as a table.
func (r Report) Write(w io.Writer) {
	count := map[string]int{}
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "NAMESPACE\tPOD\tSTATE\tASKED CPUS\tREQUESTED CPUS\tWHY")
	for _, p := range r.Pods {
		count[p.State]++
		fmt.Fprintf(out, "%s\t%s\t%s\t%g\t%g\t%s\n", p.Namespace, p.Name, p.State, p.AskedCPUs, p.RequestedCPUs, host.Printable(p.Why))
	}
	out.Flush()
	fmt.Fprintf(w, "%d pods asked for %g CPUs and request %g: %g given. %d lowered, %d left alone, %d missed, %d changed.\n", len(r.Pods),
		r.AskedCPUs, r.RequestedCPUs, r.GivenCPUs, count[stateLowered], count[stateLeft], count[stateMissed], count[stateChanged])
	if g := r.Guard; g != nil {
		fmt.Fprintf(w, "Guard: %s: %s. New pods are left with %d per cent of their CPU requests.\n", g.Reason, host.Printable(g.Message), g.FactorPercent)
	}
}

// Autoscaled are the workloads whose replicas follow the share of CPU requests that is used, in the namespaces that take
// part. What owns the pods of other kinds cannot be told from the pods, so those are unknown.
func Autoscaled(autoscalers []*autoscalingv2.HorizontalPodAutoscaler, namespaces []string) (known, unknown []snapshot.Workload) {
	for _, h := range autoscalers {
		w, ok := snapshot.ScaledByCPU(h)
		if !ok || !slices.Contains(namespaces, w.Namespace) {
			continue
		}
		if slices.Contains(scalable, w.Kind) {
			known = append(known, w)
		} else {
			unknown = append(unknown, w)
		}
	}
	return known, unknown
}
