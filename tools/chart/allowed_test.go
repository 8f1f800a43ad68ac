//go:build kubernetes

package main

import (
	"slices"
	"strings"
	"testing"

	security "github.com/openshift/api/security/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// privileged is the namespace's label that the documents ask for.
var privileged = map[string]string{"pod-security.kubernetes.io/enforce": "privileged"}

// agents names the DaemonSet.
const agents = "DaemonSet temper-agent"

// GKE's API server takes pods of Kubernetes' own classes only where a quota names the class.
func TestQuotaForClasses(t *testing.T) {
	cluster := apiServer(t, "ResourceQuota", `
    apiVersion: apiserver.config.k8s.io/v1
    kind: ResourceQuotaConfiguration
    limitedResources:
    - resource: pods
      matchScopes: [{scopeName: PriorityClass, operator: In, values: [system-node-critical, system-cluster-critical]}]`)
	home(t, cluster, defaultNamespace, privileged)
	const values = "controller: {enabled: true}\nresourceQuota: {create: true}"
	objects := objectsOf(t, values)
	var controller appsv1.Deployment
	typed(t, objects["Deployment temper-controller"], &controller)
	pods := map[string]*corev1.Pod{"agent": podOf(agentOf(t, objects), defaultNamespace), "controller": podOf(&controller, defaultNamespace)}
	for name, pod := range pods {
		if err := cluster.Create(t.Context(), pod.DeepCopy(), client.DryRunAll); err == nil || !strings.Contains(err.Error(), "insufficient quota to match these scopes") {
			t.Errorf("the pod of the %s, without a quota: %v", name, err)
		}
	}
	var quota corev1.ResourceQuota
	typed(t, objects["ResourceQuota temper"], &quota)
	if err := cluster.Create(t.Context(), &quota); err != nil {
		t.Fatal(err)
	}
	quota.Status = corev1.ResourceQuotaStatus{Hard: quota.Spec.Hard, Used: corev1.ResourceList{"pods": {}}} // the controller manager's to say
	if err := cluster.Status().Update(t.Context(), &quota); err != nil {
		t.Fatal(err)
	}
	for name, pod := range pods {
		if err := cluster.Create(t.Context(), pod, client.DryRunAll); err != nil {
			t.Errorf("the pod of the %s: %v", name, err)
		}
	}
	if made := objectsOf(t, "resourceQuota: {create: true}\npriorityClassName: ''"); made["ResourceQuota temper"] != nil {
		t.Error("a quota for no class")
	}
}

// profiles are OpenShift's names for Kubernetes'.
var profiles = map[corev1.SeccompProfileType][]string{
	corev1.SeccompProfileTypeRuntimeDefault: {"runtime/default"},
	corev1.SeccompProfileTypeUnconfined:     {"unconfined"},
}

// What OpenShift's SCC has to allow is what the agent's pod asks for, whatever else is set.
func TestSCCFitsTheAgent(t *testing.T) {
	for _, values := range []string{"", "metrics: {address: ':9770'}", "nri: {socket: ''}", "controller: {enabled: true}", "securityContext: {seccompProfile: {type: Unconfined}}"} {
		objects := objectsOf(t, "scc: {create: true}\n"+values)
		var scc security.SecurityContextConstraints
		typed(t, objects["SecurityContextConstraints temper-agent"], &scc)
		pod := agentOf(t, objects).Spec.Template.Spec
		c := pod.Containers[0]
		ports := slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.ContainerPort > 0 })
		for what, fits := range map[string]bool{
			"hostPID":            scc.AllowHostPID == pod.HostPID,
			"hostNetwork":        scc.AllowHostNetwork == pod.HostNetwork,
			"hostIPC":            scc.AllowHostIPC == pod.HostIPC,
			"ports":              scc.AllowHostPorts == ports,
			"privileged":         !scc.AllowPrivilegedContainer,
			"capabilities added": slices.Equal(scc.AllowedCapabilities, c.SecurityContext.Capabilities.Add),
			"those dropped":      slices.Equal(scc.RequiredDropCapabilities, c.SecurityContext.Capabilities.Drop),
			"its root":           scc.ReadOnlyRootFilesystem == *c.SecurityContext.ReadOnlyRootFilesystem,
			"seccomp":            slices.Equal(scc.SeccompProfiles, profiles[c.SecurityContext.SeccompProfile.Type]),
			"SELinux":            scc.SELinuxContext.Type == security.SELinuxStrategyRunAsAny && c.SecurityContext.SELinuxOptions.Type == "spc_t",
			"user 0":             scc.RunAsUser.Type == security.RunAsUserStrategyRunAsAny,
			"groups":             scc.FSGroup.Type == security.FSGroupStrategyRunAsAny && scc.SupplementalGroups.Type == security.SupplementalGroupsStrategyRunAsAny,
			"volumes":            scc.AllowHostDirVolumePlugin && slices.Equal(scc.Volumes, volumesOf(pod)),
			"nobody else":        len(scc.Users)+len(scc.Groups) == 0,
		} {
			if !fits {
				t.Errorf("%q: %s: %+v", values, what, scc)
			}
		}
		if nonroot := objects["Role temper-controller-scc"] != nil; nonroot != strings.Contains(values, "controller") {
			t.Errorf("%q: the controller's right to an SCC: %t", values, nonroot)
		}
	}
}

// volumesOf are the kinds of a pod's volumes, and of the token that Kubernetes adds.
func volumesOf(pod corev1.PodSpec) []security.FSType {
	kinds := []security.FSType{security.FSProjected}
	for _, v := range pod.Volumes {
		if v.HostPath == nil {
			kinds = append(kinds, security.FSType("not known: "+v.Name))
		} else {
			kinds = append(kinds, security.FSTypeHostPath)
		}
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

func objectsOf(t *testing.T, values string) map[string]*unstructured.Unstructured {
	t.Helper()
	objects := map[string]*unstructured.Unstructured{}
	for _, object := range everything(t, values) {
		objects[object.GetKind()+" "+object.GetName()] = &object
	}
	return objects
}

// typed reads an object as its type, which has to know each field.
func typed(t *testing.T, object *unstructured.Unstructured, into any) {
	t.Helper()
	if object == nil {
		t.Fatalf("no object to read as %T", into)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, into, true); err != nil {
		t.Fatal(err)
	}
}

func agentOf(t *testing.T, objects map[string]*unstructured.Unstructured) *appsv1.DaemonSet {
	t.Helper()
	var set appsv1.DaemonSet
	typed(t, objects[agents], &set)
	return &set
}

// podOf is a pod of a workload, in a namespace.
func podOf(workload client.Object, namespace string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: workload.GetName()}}
	switch workload := workload.(type) {
	case *appsv1.DaemonSet:
		pod.Labels, pod.Spec = workload.Spec.Template.Labels, *workload.Spec.Template.Spec.DeepCopy()
	case *appsv1.Deployment:
		pod.Labels, pod.Spec = workload.Spec.Template.Labels, *workload.Spec.Template.Spec.DeepCopy()
	}
	return pod
}
