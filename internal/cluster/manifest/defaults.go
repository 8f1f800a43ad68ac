package manifest

import corev1 "k8s.io/api/core/v1"

// DefaultRequests gives each container that has a limit and no request its limit as a request, and a pod that has
// limits of its own the sum of its containers' requests, else those limits, as the API server does. The QoS class follows
// from it.
func DefaultRequests(spec *corev1.PodSpec) {
	sum := corev1.ResourceList{}
	for _, containers := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range containers {
			r := &containers[i].Resources
			fill(r, r.Limits)
			for name, quantity := range r.Requests {
				quantity.Add(sum[name])
				sum[name] = quantity
			}
		}
	}
	if r := spec.Resources; r != nil {
		for name := range sum {
			if _, limited := r.Limits[name]; !limited {
				delete(sum, name)
			}
		}
		fill(r, sum)
		fill(r, r.Limits)
	}
}

// fill adds requests for what has none.
func fill(r *corev1.ResourceRequirements, with corev1.ResourceList) {
	for name, quantity := range with {
		if _, asked := r.Requests[name]; asked {
			continue
		}
		if r.Requests == nil {
			r.Requests = corev1.ResourceList{}
		}
		r.Requests[name] = quantity
	}
}
