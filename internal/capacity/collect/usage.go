package collect

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	podresource "k8s.io/component-helpers/resource"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"temper.dev/temper/internal/capacity/snapshot"
)

// AddMoment adds what metrics.k8s.io says that pods use at this moment. A cluster that does not serve it says nothing.
func (r *Result) AddMoment(ctx context.Context, cluster client.Reader) error {
	var list metricsv1beta1.PodMetricsList
	err := cluster.List(ctx, &list)
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsForbidden(err) {
		r.note("no use of this moment: the cluster does not serve metrics.k8s.io, or not to you")
		return nil
	}
	if err != nil {
		return fmt.Errorf("list PodMetrics: %w", err)
	}
	r.Moment = map[string]resource.Quantity{}
	for _, pod := range list.Items {
		var sum resource.Quantity
		for _, c := range pod.Containers {
			sum.Add(*c.Usage.Cpu())
		}
		r.Moment[pod.Namespace+"/"+pod.Name] = sum
	}
	return nil
}

const verticalKind = "VerticalPodAutoscaler"

var verticals = schema.GroupVersionKind{Group: "autoscaling.k8s.io", Version: "v1", Kind: verticalKind + "List"}

// verticalAutoscaler is what a VerticalPodAutoscaler's object says. Its module would bring all of its types' dependencies.
type verticalAutoscaler struct {
	Metadata struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		TargetRef struct {
			Kind string `json:"kind"`
			Name string `json:"name"`
		} `json:"targetRef"`
	} `json:"spec"`
	Status struct {
		Recommendation struct {
			ContainerRecommendations []struct {
				ContainerName string              `json:"containerName"`
				Target        corev1.ResourceList `json:"target"`
			} `json:"containerRecommendations"`
		} `json:"recommendation"`
		Conditions []struct {
			Type               string                 `json:"type"`
			Status             metav1.ConditionStatus `json:"status"`
			LastTransitionTime metav1.Time            `json:"lastTransitionTime"`
		} `json:"conditions"`
	} `json:"status"`
}

// takeVertical keeps an autoscaler until all pods are known.
func (r *Result) takeVertical(object map[string]any) error {
	var v verticalAutoscaler
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &v); err != nil {
		return fmt.Errorf("%s: %w", verticalKind, err)
	}
	r.autoscalers = append(r.autoscalers, v)
	return nil
}

// AddRecommendations adds what VerticalPodAutoscalers recommend. A cluster without them says nothing.
func (r *Result) AddRecommendations(ctx context.Context, cluster client.Reader, now time.Time) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(verticals)
	err := cluster.List(ctx, list)
	if meta.IsNoMatchError(err) {
		return nil
	}
	if apierrors.IsForbidden(err) {
		r.note("VerticalPodAutoscalers may not be listed by you, and are not used")
		return nil
	}
	if err != nil {
		return fmt.Errorf("list %ss: %w", verticalKind, err)
	}
	for _, item := range list.Items {
		if err := r.takeVertical(item.Object); err != nil {
			return err
		}
	}
	r.applyVertical(now)
	return nil
}

// applyVertical gives each pod what the autoscaler of its workload recommends: of containers that it leaves out, what
// they request.
func (r *Result) applyVertical(now time.Time) {
	of := r.Workloads()
	byTarget := map[snapshot.Workload]verticalAutoscaler{}
	for _, v := range r.autoscalers {
		byTarget[snapshot.Workload{Namespace: v.Metadata.Namespace, Kind: v.Spec.TargetRef.Kind, Name: v.Spec.TargetRef.Name}] = v
	}
	for _, pod := range r.Pods {
		v, ok := byTarget[of(pod)]
		if !ok || len(v.Status.Recommendation.ContainerRecommendations) == 0 {
			continue
		}
		if r.Recommended == nil {
			r.Recommended = map[string]snapshot.Recommendation{}
		}
		r.Recommended[snapshot.Key(pod)] = snapshot.Recommendation{CPU: v.cpu(pod), Hours: v.hours(now)}
	}
}

func (v *verticalAutoscaler) cpu(pod *corev1.Pod) resource.Quantity {
	as := pod.DeepCopy()
	for _, containers := range [][]corev1.Container{as.Spec.Containers, as.Spec.InitContainers} {
		for i := range containers {
			for _, c := range v.Status.Recommendation.ContainerRecommendations {
				if target, ok := c.Target[corev1.ResourceCPU]; ok && c.ContainerName == containers[i].Name {
					containers[i].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: target}
				}
			}
		}
	}
	requests := podresource.PodRequests(as, podresource.PodResourcesOptions{})
	return *requests.Cpu()
}

// hours for which there has been a recommendation.
func (v *verticalAutoscaler) hours(now time.Time) float64 {
	for _, c := range v.Status.Conditions {
		if c.Type == "RecommendationProvided" && c.Status == metav1.ConditionTrue {
			return hours(c.LastTransitionTime, now)
		}
	}
	return 0
}
