package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

const (
	folder    = "../../charts/temper"
	manifests = "../../packaging/kubernetes"
)

func load(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// valuesOf reads values as 'helm install --values' does.
func valuesOf(t *testing.T, text string) map[string]any {
	t.Helper()
	values, err := loader.LoadValues(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return values
}

func made(t *testing.T, values string) map[string]string {
	t.Helper()
	files, err := render(load(t), valuesOf(t, values), defaultNamespace)
	if err != nil {
		t.Fatalf("%s: %v", values, err)
	}
	return files
}

// agent is the DaemonSet that a file of the chart holds. What the API's type does not know is refused.
func agent(t *testing.T, text string) *appsv1.DaemonSet {
	t.Helper()
	var set appsv1.DaemonSet
	if err := yaml.UnmarshalStrict([]byte(text), &set); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return &set
}

func TestManifestsAreTheChart(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "crds"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := writeManifests(folder, dir); err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"*.yaml", "crds/*.yaml"} {
		made, _ := filepath.Glob(filepath.Join(dir, pattern))
		if len(made) == 0 {
			t.Errorf("the chart makes no %s", pattern)
		}
		for _, file := range made {
			want, _ := os.ReadFile(file)
			name, _ := filepath.Rel(dir, file)
			if got, err := os.ReadFile(filepath.Join(manifests, name)); err != nil || !bytes.Equal(got, want) {
				t.Errorf("packaging/kubernetes/%s is not what the chart makes (%v); run 'make generate'", name, err)
			}
		}
	}
}

// 'kubectl apply -k' makes what the chart makes, and the namespace, which Helm makes itself.
func TestKustomizeBase(t *testing.T) {
	of := func(dir string) (made []string) {
		t.Helper()
		objects, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range objects.Resources() {
			text, err := object.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			made = append(made, string(text))
		}
		slices.Sort(made)
		return made
	}
	with := func(resources map[string]string) string {
		t.Helper()
		dir := t.TempDir()
		list := "resources:\n"
		for name, text := range resources {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			list += "- " + name + "\n"
		}
		if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(list), 0o644); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	files := made(t, "")
	delete(files, notes)
	own, err := os.ReadFile(filepath.Join(manifests, "namespace.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	files["namespace.yaml"] = string(own)
	if got, want := of(manifests), of(with(files)); !slices.Equal(got, want) {
		t.Errorf("'kubectl apply -k packaging/kubernetes' makes\n%s\nand the chart\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	crds := map[string]string{}
	for _, crd := range load(t).CRDObjects() {
		crds[filepath.Base(crd.Name)] = string(crd.File.Data)
	}
	if got, want := of(manifests+"/crds"), of(with(crds)); !slices.Equal(got, want) {
		t.Error("'kubectl apply -k packaging/kubernetes/crds' does not make the chart's CustomResourceDefinitions")
	}
}

func TestNamespace(t *testing.T) {
	files, err := render(load(t), nil, "elsewhere")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if strings.Contains(text, defaultNamespace) {
			t.Errorf("%s is of %s, whatever the release's namespace is", name, defaultNamespace)
		}
	}
	if set := agent(t, files["agent.yaml"]); set.Namespace != "elsewhere" || !slices.Contains(set.Spec.Template.Spec.Containers[0].Args, "--daemonset=$(NAMESPACE)/temper-agent") {
		t.Errorf("%+v", set)
	}
}

// An overlay's namespace reaches all that names one: kustomize knows no arguments and no expressions.
func TestOverlayOfAnotherNamespace(t *testing.T) {
	dir, err := os.MkdirTemp(".", "overlay") // kustomize takes relative paths alone
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte("namespace: elsewhere\nresources: [../"+manifests+"]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	objects, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects.Resources() {
		text, err := object.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		switch name := object.GetKind() + " " + object.GetName(); name {
		case "ValidatingAdmissionPolicy temper-built-in-classes": // the namespace's own label allows the agents, too
		case "Namespace elsewhere":
			var namespace corev1.Namespace
			if err := yaml.UnmarshalStrict(text, &namespace); err != nil {
				t.Fatal(err)
			}
			for label, want := range map[string]string{"temper.dev/highest-tier": "system", "pod-security.kubernetes.io/enforce": "privileged"} {
				if got := namespace.Labels[label]; got != want {
					t.Errorf("the namespace's label %s is %q, want %q", label, got, want)
				}
			}
		default:
			if strings.Contains(string(text), defaultNamespace) {
				t.Errorf("%s is of %s still:\n%s", name, defaultNamespace, text)
			}
		}
	}
}

// Who asks for none has none: Helm renders an empty list as it renders one.
func TestNoTolerations(t *testing.T) {
	if pod := agent(t, made(t, "tolerations: []")["agent.yaml"]).Spec.Template.Spec; len(pod.Tolerations) != 0 || len(pod.Containers) != 1 {
		t.Errorf("%+v", pod.Tolerations)
	}
}

// What is in the chart's files comes whole into the objects that hold them.
func TestMonitoring(t *testing.T) {
	text := made(t, "metrics: {address: ':9770'}\nmonitoring: {podMonitor: true, serviceMonitor: true, prometheusRule: true, dashboard: true, labels: {release: prometheus}}")["monitoring.yaml"]
	found := map[string]map[string]any{}
	for _, document := range strings.Split(text, "\n---\n")[1:] {
		var object map[string]any
		if err := yaml.UnmarshalStrict([]byte(document), &object); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		found[object["kind"].(string)] = object
	}
	read := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join(folder, "files", name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	var alerts any
	if err := yaml.Unmarshal(read("alerts.yaml"), &alerts); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(found["PrometheusRule"]["spec"], alerts) {
		t.Errorf("%v", found["PrometheusRule"]["spec"])
	}
	if data := found["ConfigMap"]["data"].(map[string]any)["temper.json"]; data != string(read("dashboard.json")) {
		t.Errorf("%v", data)
	}
	// The operator's own types know each field.
	for kind, typed := range map[string]any{"PodMonitor": &monitoring.PodMonitor{}, "ServiceMonitor": &monitoring.ServiceMonitor{}, "PrometheusRule": &monitoring.PrometheusRule{}} {
		text, err := yaml.Marshal(found[kind])
		if err == nil {
			err = yaml.UnmarshalStrict(text, typed)
		}
		if err != nil || typed.(metav1.Object).GetLabels()["release"] != "prometheus" {
			t.Errorf("%v in\n%s", err, text)
		}
	}
	ports := agent(t, made(t, "metrics: {address: '[::1]:9770'}")["agent.yaml"]).Spec.Template.Spec.Containers[0].Ports
	if len(ports) != 1 || ports[0].Name != "metrics" || ports[0].ContainerPort != 9770 {
		t.Errorf("%v", ports)
	}
}

// A roll-out stops at a node whose agent is not ready, which the agent itself says, at the port that the probe asks. Nothing
// has a kubelet kill an agent.
func TestRollout(t *testing.T) {
	set := agent(t, made(t, "readinessPort: 9999")["agent.yaml"])
	c := set.Spec.Template.Spec.Containers[0]
	probe := c.ReadinessProbe
	if probe == nil || probe.HTTPGet == nil {
		t.Fatal("no readiness probe")
	}
	if asked := probe.HTTPGet; asked.Host != "127.0.0.1" || asked.Path != "/readyz" || !slices.Contains(c.Args, "--ready=127.0.0.1:"+asked.Port.String()) {
		t.Errorf("the probe asks %+v of an agent with %v", asked, c.Args)
	}
	const watchdog = 30
	if told := probe.PeriodSeconds * 3; set.Spec.MinReadySeconds <= watchdog+told {
		t.Errorf("minReadySeconds is %d: a scheduler that is thrown out after %d s, which the probe tells within %d s, goes on to the next node", set.Spec.MinReadySeconds, watchdog, told)
	}
	if rolling := set.Spec.UpdateStrategy.RollingUpdate; rolling.MaxUnavailable.IntValue() != 1 {
		t.Errorf("%v nodes at once", rolling.MaxUnavailable)
	}
	if c.LivenessProbe != nil || c.StartupProbe != nil {
		t.Error("a kubelet may kill the agent")
	}
}

// Without NRI nothing of the runtime's is mounted; with it, no more than its folder.
func TestNRI(t *testing.T) {
	for values, folder := range map[string]string{"": "/var/run/nri", "nri: {socket: /run/other/nri.sock}": "/run/other", "nri: {socket: ''}": ""} {
		text := made(t, values)["agent.yaml"]
		pod := agent(t, text).Spec.Template.Spec
		at := ""
		for _, v := range pod.Volumes {
			if v.Name == "nri" {
				at = v.HostPath.Path
			}
		}
		mounted := slices.ContainsFunc(pod.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "nri" && m.MountPath == folder && m.ReadOnly })
		if at != folder || mounted != (folder != "") || strings.Contains(text, "--nri") != (folder != "") {
			t.Errorf("%q mounts %q in\n%s", values, at, text)
		}
	}
}

// What the runtime confines a container with by itself forbids to pin the scheduler.
func TestConfinement(t *testing.T) {
	context := func(values string) *corev1.SecurityContext {
		return agent(t, made(t, values)["agent.yaml"]).Spec.Template.Spec.Containers[0].SecurityContext
	}
	if c := context(""); c.AppArmorProfile == nil || c.AppArmorProfile.Type != corev1.AppArmorProfileTypeUnconfined || c.AppArmorProfile.LocalhostProfile != nil ||
		c.SELinuxOptions == nil || c.SELinuxOptions.Type != "spc_t" {
		t.Errorf("%+v", c)
	}
	if c := context("seLinuxOptions: {type: ''}"); c.SELinuxOptions != nil {
		t.Errorf("%+v", c.SELinuxOptions)
	}
	text, err := os.ReadFile(filepath.Join(folder, "apparmor", "temper-agent"))
	if err != nil {
		t.Fatal(err)
	}
	c := context("appArmorProfile: {type: Localhost, localhostProfile: temper-agent}")
	if c.AppArmorProfile.Type != corev1.AppArmorProfileTypeLocalhost || !strings.Contains(string(text), "\nprofile "+*c.AppArmorProfile.LocalhostProfile+" ") {
		t.Errorf("%+v is not the profile in\n%s", c.AppArmorProfile, text)
	}
}

func TestNotes(t *testing.T) {
	for values, want := range map[string]string{
		"":                            "temper.dev/highest-tier=critical",
		"safeMode: true":              "All nodes are left to the kernel's own scheduler",
		"tierPolicy: {create: false}": "none was made",
		"tierPolicy: {nodeSelector: {matchLabels: {pool: latency}}}": "does not select are left",
		"metrics: {address: ':9770'}":                                "without TLS",
	} {
		if text := made(t, values)[notes]; !strings.Contains(text, want) {
			t.Errorf("%q: no %q in\n%s", values, want, text)
		}
	}
	if text := made(t, "admission: {create: false}")[notes]; strings.Contains(text, "highest-tier") {
		t.Errorf("a namespace's label is asked for that nothing looks at at admission:\n%s", text)
	}
}

// everything that the chart makes with these values.
func everything(t *testing.T, values string) (objects []unstructured.Unstructured) {
	t.Helper()
	for name, text := range made(t, values) {
		if name == notes {
			continue
		}
		for _, document := range strings.Split("\n"+text, "\n---\n") {
			var object unstructured.Unstructured
			if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
				t.Fatalf("%v in\n%s", err, document)
			}
			if object.Object != nil {
				objects = append(objects, object)
			}
		}
	}
	return objects
}

// Pods that name a class which is gone are refused: it stays when the release goes, and nothing else does.
func TestWhatIsKept(t *testing.T) {
	var kept []string
	for _, object := range everything(t, "") {
		switch policy := object.GetAnnotations()["helm.sh/resource-policy"]; policy {
		case "":
		case "keep":
			kept = append(kept, object.GetKind()+" "+object.GetName())
		default:
			t.Errorf("Helm knows no policy %q", policy)
		}
	}
	slices.Sort(kept)
	if want := []string{"PriorityClass temper-background", "PriorityClass temper-critical"}; !slices.Equal(kept, want) {
		t.Errorf("kept: %v, not %v", kept, want)
	}
}

// An admission policy that cannot be evaluated refuses nothing but writes to what is Temper's own. As it is in a running
// API server: TestWhatIsRemovedStopsNoPod of test/kubernetes.
func TestAdmissionThatFailsRefusesNothing(t *testing.T) {
	policies := 0
	for _, object := range everything(t, "admission: {builtInClasses: deny}\ncontroller: {enabled: true}") {
		if strings.HasSuffix(object.GetKind(), "WebhookConfiguration") || object.GetKind() == "MutatingAdmissionPolicy" {
			t.Errorf("%s %s: this test does not know what it can stop", object.GetKind(), object.GetName())
		}
		if object.GetKind() != "ValidatingAdmissionPolicy" {
			continue
		}
		policies++
		var policy admissionv1.ValidatingAdmissionPolicy
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, &policy, true); err != nil {
			t.Fatal(err)
		}
		ignores := policy.Spec.FailurePolicy != nil && *policy.Spec.FailurePolicy == admissionv1.Ignore
		for _, rule := range policy.Spec.MatchConstraints.ResourceRules {
			ownWrites := slices.ContainsFunc(policy.Spec.MatchConditions, func(c admissionv1.MatchCondition) bool { return c.Name == "controller" })
			if !ignores && !ownWrites && !slices.Equal(rule.APIGroups, []string{"temper.dev"}) {
				t.Errorf("%s refuses what it cannot evaluate, of %v %v", policy.Name, rule.APIGroups, rule.Resources)
			}
		}
		if !ignores && policy.Spec.ParamKind != nil {
			t.Errorf("%s refuses everything once %s has gone", policy.Name, policy.Spec.ParamKind.Kind)
		}
	}
	if policies != 4 {
		t.Errorf("%d policies", policies)
	}
}

// One of the controllers works and another waits: they bear the loss of a node, and nothing that runs in a pod is theirs.
func TestController(t *testing.T) {
	files := made(t, "controller: {enabled: true}")
	var set appsv1.Deployment
	text, budget, found := strings.Cut(files["controller.yaml"], "\n---\n")
	if err := yaml.UnmarshalStrict([]byte(text), &set); err != nil || !found {
		t.Fatalf("%v in\n%s", err, text)
	}
	c := set.Spec.Template.Spec.Containers[0]
	if *set.Spec.Replicas != 2 || !strings.Contains(budget, "maxUnavailable: 1") {
		t.Errorf("%d replicas, want 2, with a budget of 1:\n%s", *set.Spec.Replicas, budget)
	}
	if s := c.SecurityContext; !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation || s.Capabilities.Add != nil || !*set.Spec.Template.Spec.SecurityContext.RunAsNonRoot {
		t.Errorf("it may do more than it has to: %+v", s)
	}
	for _, probe := range []*corev1.Probe{c.ReadinessProbe, c.LivenessProbe} {
		if probe == nil || probe.HTTPGet.Port.String() != c.Ports[0].Name || !slices.Contains(c.Args, fmt.Sprintf("--probes=:%d", c.Ports[0].ContainerPort)) {
			t.Errorf("%+v asks %+v of %v", probe, c.Ports, c.Args)
		}
	}
	for _, object := range everything(t, "controller: {enabled: true}") {
		if object.GetName() != "temper-controller" || object.GetKind() != "ClusterRole" {
			continue
		}
		var role rbacv1.ClusterRole
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, &role, true); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				reads := !slices.ContainsFunc(rule.Verbs, func(verb string) bool { return !slices.Contains([]string{"get", "list", "watch"}, verb) })
				writes := []string{"capacitypolicies/status", "nodes/status", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings"}
				if resource == "secrets" || !reads && !slices.Contains(writes, resource) || slices.Contains(rule.Verbs, "*") {
					t.Errorf("it may %v %s", rule.Verbs, resource)
				}
			}
		}
	}
}

// Helm's own opinion.
func TestLint(t *testing.T) {
	for _, m := range lint.RunAll(folder, nil, defaultNamespace).Messages {
		if m.Severity >= support.WarningSev {
			t.Error(m)
		}
	}
}

// Equal charts have equal archives, whenever they were checked out; and an archive is the chart.
func TestPackage(t *testing.T) {
	copied := filepath.Join(t.TempDir(), "temper")
	if err := os.CopyFS(copied, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	earlier := time.Unix(1e9, 0)
	err := filepath.WalkDir(copied, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chtimes(path, earlier, earlier)
	})
	if err != nil {
		t.Fatal(err)
	}
	var archives [][]byte
	for _, from := range []string{folder, copied} {
		to := t.TempDir()
		if err := pack(from, to); err != nil {
			t.Fatal(err)
		}
		files, _ := filepath.Glob(to + "/*")
		if want := "temper-" + load(t).Metadata.Version + ".tgz"; len(files) != 1 || filepath.Base(files[0]) != want {
			t.Fatalf("%v, not %s", files, want)
		}
		data, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		archives = append(archives, data)
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("the archive depends on when the files were written")
	}
	packed, err := loader.LoadArchive(bytes.NewReader(archives[0]))
	if err != nil {
		t.Fatal(err)
	}
	files, err := render(packed, nil, defaultNamespace)
	if err != nil {
		t.Fatal(err)
	}
	if want := made(t, ""); !maps.Equal(files, want) || len(packed.CRDObjects()) != len(load(t).CRDObjects()) {
		t.Error("the archive makes something else than the chart")
	}
}

// An agent's rights, and the policy that bounds them, are those of the service account that it runs as.
func TestServiceAccount(t *testing.T) {
	files := made(t, "serviceAccount: {create: false, name: agents}")
	for _, object := range everything(t, "serviceAccount: {create: false, name: agents}") {
		if object.GetKind() == "ServiceAccount" {
			t.Errorf("%s is made", object.GetName())
		}
		if subjects, found, _ := unstructured.NestedSlice(object.Object, "subjects"); found {
			for _, s := range subjects {
				if got := s.(map[string]any)["name"]; got != "agents" {
					t.Errorf("%s %s is of %v, want agents", object.GetKind(), object.GetName(), got)
				}
			}
		}
	}
	if !strings.Contains(files["agent-rbac.yaml"], "[^:]+:agents$'") {
		t.Error("the agents may write any TemperNode")
	}
}

// Whatever is added, the labels by which agents are found stay, and every object has the recommended ones.
func TestLabels(t *testing.T) {
	objects := everything(t, "commonLabels: {team: core, app.kubernetes.io/name: other}\nmetrics: {address: ':9770'}\n"+
		"monitoring: {podMonitor: true, serviceMonitor: true, prometheusRule: true, dashboard: true, labels: {app.kubernetes.io/part-of: other}}\ncontroller: {enabled: true}")
	for _, object := range objects {
		labels := object.GetLabels()
		if name := labels["app.kubernetes.io/name"]; !slices.Contains([]string{"temper", "temper-agent", "temper-controller"}, name) || labels["team"] != "core" ||
			labels["app.kubernetes.io/instance"] != "temper" || labels["app.kubernetes.io/version"] != load(t).AppVersion() || labels["app.kubernetes.io/part-of"] != "temper" {
			t.Errorf("%s %s: %v", object.GetKind(), object.GetName(), labels)
		}
	}
	set := agent(t, made(t, "commonLabels: {app.kubernetes.io/name: other}\npodLabels: {app.kubernetes.io/name: another}")["agent.yaml"])
	for key, want := range set.Spec.Selector.MatchLabels {
		if got := set.Spec.Template.Labels[key]; got != want {
			t.Errorf("the DaemonSet's pods have %s %q, want %q", key, got, want)
		}
	}
}

// Who may view may change nothing, and who may edit writes policies alone: a TemperNode is its agent's.
func TestAggregatedRoles(t *testing.T) {
	want := map[string]map[string][]string{
		"temper-view": {"tempernodes": {"get", "list", "watch"}, "tierpolicies": {"get", "list", "watch"}, "capacitypolicies": {"get", "list", "watch"}},
		"temper-edit": {"tierpolicies": {"create", "update", "patch", "delete", "deletecollection"},
			"capacitypolicies": {"create", "update", "patch", "delete", "deletecollection"}},
	}
	roles := 0
	for _, object := range everything(t, "") {
		verbs, known := want[object.GetName()]
		if !known {
			continue
		}
		roles++
		var role rbacv1.ClusterRole
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, &role, true); err != nil {
			t.Fatal(err)
		}
		got := map[string][]string{}
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				got[resource] = rule.Verbs
			}
		}
		if !reflect.DeepEqual(got, verbs) {
			t.Errorf("%s: %v, want %v", role.Name, got, verbs)
		}
		viewing := role.Labels["rbac.authorization.k8s.io/aggregate-to-view"] == "true"
		if viewing != (role.Name == "temper-view") || role.Labels["rbac.authorization.k8s.io/aggregate-to-edit"] != "true" {
			t.Errorf("%s is included by %v", role.Name, role.Labels)
		}
	}
	if roles != len(want) {
		t.Errorf("%d roles, want %d", roles, len(want))
	}
}
