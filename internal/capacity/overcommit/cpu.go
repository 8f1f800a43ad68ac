package overcommit

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"temper.dev/temper/api/v1alpha1"
)

// cpu is what a pod asks for, in mCPU: containers first, then init containers.
type cpu struct {
	names            []string
	requests, limits []int64
	memory           []bool // request and limit are equal, and there
	init             int    // the first init container
	sidecar          []bool
	pod              struct {
		resources      bool // the pod has some of its own
		request, limit int64
		memory         bool
	}
}

func read(pod *corev1.Pod) cpu {
	c := cpu{init: len(pod.Spec.Containers)}
	for _, container := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
		request, limit := milli(container.Resources.Requests), milli(container.Resources.Limits)
		if request == none {
			request = limit
		}
		c.names = append(c.names, container.Name)
		c.requests = append(c.requests, request)
		c.limits = append(c.limits, limit)
		c.memory = append(c.memory, memoryIsFixed(container.Resources.Requests, container.Resources.Limits))
		c.sidecar = append(c.sidecar, container.RestartPolicy != nil && *container.RestartPolicy == corev1.ContainerRestartPolicyAlways)
	}
	c.pod.request, c.pod.limit = none, none
	if own := pod.Spec.Resources; own != nil {
		c.pod.resources = true
		c.pod.request, c.pod.limit = milli(own.Requests), milli(own.Limits)
		c.pod.memory = memoryIsFixed(own.Requests, own.Limits)
		if c.pod.request == none && len(own.Limits) > 0 {
			// The API server fills in what the containers request, or else the limit; once more after each admission policy,
			// if only a LimitRange has given the containers what they request.
			c.pod.request = c.pod.limit
			if slices.ContainsFunc(c.requests, func(request int64) bool { return request != none }) {
				c.pod.request = c.aggregate(c.requests)
			}
		}
	}
	return c
}

func milli(list corev1.ResourceList) int64 {
	q, ok := list[corev1.ResourceCPU]
	switch {
	case !ok:
		return none
	case q.CmpInt64(maxCores) > 0:
		return maxMilli + 1
	}
	return q.MilliValue()
}

func memoryIsFixed(requests, limits corev1.ResourceList) bool {
	limit := limits[corev1.ResourceMemory]
	request, ok := requests[corev1.ResourceMemory]
	return limit.Sign() > 0 && (!ok || request.Cmp(limit) == 0)
}

func (c cpu) beyondMeasure() bool {
	return len(c.names) > maxContainers || slices.Max(slices.Concat(c.requests, c.limits, []int64{c.pod.request, c.pod.limit})) > maxMilli
}

// aggregate is what containers come to: those that run side by side, or an init container with the sidecars before it.
func (c cpu) aggregate(of []int64) int64 {
	var beside, sidecars, initially int64
	for i, amount := range of {
		amount = max(amount, 0)
		switch {
		case i < c.init:
			beside += amount
			continue
		case c.sidecar[i]:
			sidecars += amount
			initially = max(initially, sidecars)
		default:
			initially = max(initially, sidecars+amount)
		}
	}
	return max(beside+sidecars, initially)
}

func (c cpu) equal(other cpu) bool {
	return slices.Equal(c.requests, other.requests) && c.pod.request == other.pod.request
}

// total is what a scheduler counts.
func (c cpu) total() int64 {
	if c.pod.request != none {
		return c.pod.request
	}
	return c.aggregate(c.requests)
}

// totalLimit is what a LimitRange for pods counts.
func (c cpu) totalLimit() int64 {
	if c.pod.limit != none {
		return c.pod.limit
	}
	return c.aggregate(c.limits)
}

// guaranteed says whether the pod's QoS class is Guaranteed. With resources of its own, the containers' do not count.
func (c cpu) guaranteed() bool {
	if c.pod.resources {
		return c.pod.memory && c.pod.limit > 0 && c.pod.request == c.pod.limit
	}
	for i := range c.names {
		if !c.memory[i] || c.limits[i] <= 0 || c.requests[i] != c.limits[i] {
			return false
		}
	}
	return true
}

var annotation = regexp.MustCompile(annotationPattern)

const annotationPattern = `^((/|[a-z0-9-]{1,63})=[1-9][0-9]{0,9}m)(,(/|[a-z0-9-]{1,63})=[1-9][0-9]{0,9}m)*$`

// claims are what an OriginalAnnotation says, of those that it names once.
func claims(text string) map[string]int64 {
	if len(text) > maxAnnotation || !annotation.MatchString(text) {
		return nil
	}
	claimed, twice := map[string]int64{}, map[string]bool{}
	for _, entry := range strings.Split(text, ",") {
		name, amount, _ := strings.Cut(entry, "=")
		_, twice[name] = claimed[name]
		claimed[name], _ = strconv.ParseInt(strings.TrimSuffix(amount, "m"), 10, 64)
	}
	for name, is := range twice {
		if is {
			delete(claimed, name)
		}
	}
	return claimed
}

// record is the OriginalAnnotation of what was lowered.
func record(original, lowered cpu) string {
	var entries []string
	note := func(name string, before, after int64) {
		if after != before {
			entries = append(entries, fmt.Sprintf("%s=%dm", name, before))
		}
	}
	for i, name := range original.names {
		note(name, original.requests[i], lowered.requests[i])
	}
	note(podKey, original.pod.request, lowered.pod.request)
	return strings.Join(entries, ",")
}

// write gives the pod the requests that differ from the stated ones.
func (c cpu) write(pod *corev1.Pod, stated cpu) {
	set := func(own *corev1.ResourceRequirements, before, after int64) {
		if after != before {
			setCPU(own, after)
		}
	}
	for i := range c.names {
		if i < c.init {
			set(&pod.Spec.Containers[i].Resources, stated.requests[i], c.requests[i])
		} else {
			set(&pod.Spec.InitContainers[i-c.init].Resources, stated.requests[i], c.requests[i])
		}
	}
	if c.pod.resources {
		set(pod.Spec.Resources, stated.pod.request, c.pod.request)
	}
}

func setCPU(own *corev1.ResourceRequirements, request int64) {
	if own.Requests == nil {
		own.Requests = corev1.ResourceList{}
	}
	own.Requests[corev1.ResourceCPU] = *resource.NewMilliQuantity(request, resource.DecimalSI)
}

// askFor has a container ask for so many of v1alpha1.OvercommitResource. Kubernetes wants a limit that equals the request.
func askFor(own *corev1.ResourceRequirements, amount int64) {
	for _, list := range []*corev1.ResourceList{&own.Requests, &own.Limits} {
		delete(*list, v1alpha1.OvercommitResource)
		if amount == 0 {
			continue
		}
		if *list == nil {
			*list = corev1.ResourceList{}
		}
		(*list)[v1alpha1.OvercommitResource] = *resource.NewQuantity(amount, resource.DecimalSI)
	}
}
