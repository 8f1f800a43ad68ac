//go:build kubernetes

package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/brianvoe/gofakeit/v7"
	security "github.com/openshift/api/security/v1"
	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"
)

var (
	seeds     = flag.Int("values", 1000, "how many random values are tried")
	firstSeed = flag.Uint64("seed", uint64(time.Now().UnixNano()), "of the first; each failure names its own")
)

// samples are valid values of what Kubernetes' own types say, which the schema leaves to the API server; by path.
var samples = map[string][]string{
	"/resources": {`{}`, `{"requests": {"cpu": "20m"}}`, `{"requests": {"cpu": 1}, "limits": {"memory": "1Gi", "cpu": "2.5"}}`},
	"/affinity": {`{}`, `{"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}}}`,
		`{"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": {"topologyKey": "zone"}}]}}`},
	"/tolerations/":      {`{"operator": "Exists"}`, `{"key": "gpu", "value": "true", "effect": "NoSchedule"}`, `{"key": "gpu", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}`},
	"/extraEnv/":         {`{"name": "HTTPS_PROXY", "value": "http://p: 1 #"}`, `{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}}`},
	"/extraVolumes":      {`[]`, `[{"name": "more", "emptyDir": {}}]`, `[{"name": "more", "hostPath": {"path": "/more: #"}}, {"name": "yes", "configMap": {"name": "c", "optional": true}}]`},
	"/extraVolumeMounts": {`[]`, `[{"name": "run", "mountPath": "/more"}]`, `[{"name": "etc", "mountPath": "/a b # c", "readOnly": true}, {"name": "etc", "mountPath": "/b", "subPath": "x"}]`},
	"/securityContext":   {`{}`, `{"seccompProfile": {"type": "Unconfined"}}`, `{"privileged": true, "capabilities": {"add": ["SYS_ADMIN"]}}`},
	"/tierPolicy/nodeSelector/matchExpressions/": {`{"key": "pool", "operator": "In", "values": ["a", "true", "1"]}`, `{"key": "a/b", "operator": "DoesNotExist"}`},
}

// texts are what a string may be that the schema does not bound: YAML and templates read some of them as something else.
var texts = []string{"", "true", "123", "1e3", "null", "~", "- a", "a: b", "a #b", "#", "{{ .Values }}", "{a", "[", `"`, "'", "%", "|", "&a", "*a", "a\nb: c", "\t", "ä€", "---", "\\"}

// values makes random ones that a schema takes.
type values struct {
	*gofakeit.Faker
	random *rand.Rand
	defs   map[string]any
}

func (v values) of(schema map[string]any, path string, all bool) any {
	if ref, ok := schema["$ref"].(string); ok {
		return v.of(v.defs[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any), path, all)
	}
	if known := samples[strings.TrimPrefix(path, "/controller")]; known != nil { // its fields are as the agent's
		var value any
		if err := json.Unmarshal([]byte(known[v.random.IntN(len(known))]), &value); err != nil {
			panic(fmt.Sprintf("%s: %v", path, err))
		}
		return value
	}
	if one, ok := schema["const"]; ok {
		return one
	}
	if list, ok := schema["enum"].([]any); ok {
		return list[v.random.IntN(len(list))]
	}
	if list, ok := schema["oneOf"].([]any); ok { // each names all that it wants
		return v.of(list[v.random.IntN(len(list))].(map[string]any), path, true)
	}
	switch schema["type"] {
	case "boolean":
		return v.random.IntN(2) == 0
	case "integer":
		low, high := bound(schema, "minimum", 0), bound(schema, "maximum", 100)
		return low + v.random.IntN(high-low+1)
	case "string":
		if pattern, ok := schema["pattern"].(string); ok {
			return v.Regex(pattern)
		}
		return texts[v.random.IntN(len(texts))]
	case "array":
		list := []any{}
		for range v.random.IntN(3) {
			list = append(list, v.of(schema["items"].(map[string]any), path+"/", all))
		}
		return list
	case "object":
		return v.object(schema, path, all)
	}
	panic(fmt.Sprintf("%s: this test makes no values of %v", path, schema))
}

func (v values) object(schema map[string]any, path string, all bool) any {
	object := map[string]any{}
	properties, _ := schema["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) { // a map's own order would make a seed another's
		required, _ := schema["required"].([]any)
		if all || slices.Contains(required, any(name)) || v.random.IntN(2) == 0 {
			object[name] = v.of(properties[name].(map[string]any), path+"/"+name, all)
		}
	}
	if more, ok := schema["additionalProperties"].(map[string]any); ok {
		for range v.random.IntN(3) {
			key, _ := v.of(schema["propertyNames"].(map[string]any), path+" key", all).(string)
			object[key] = v.of(more, path+"/*", all)
		}
	}
	return object
}

func bound(schema map[string]any, name string, otherwise int) int {
	if n, ok := schema[name].(float64); ok {
		return int(n)
	}
	return otherwise
}

// Whatever the schema takes makes objects that the API server takes, or is refused with a cure.
func TestRandomValues(t *testing.T) {
	c := load(t)
	var schema map[string]any
	if err := json.Unmarshal(c.Schema, &schema); err != nil {
		t.Fatal(err)
	}
	delete(schema["properties"].(map[string]any), "global") // Helm's own
	cluster := apiServer(t, "", "")
	home(t, cluster, defaultNamespace, nil)
	asked, made := map[string]bool{}, 0
	for i := range *seeds {
		seed := *firstSeed + uint64(i)
		v := values{gofakeit.New(seed), rand.New(rand.NewPCG(seed, 0)), schema["$defs"].(map[string]any)}
		given, _ := v.of(schema, "", false).(map[string]any)
		text, err := yaml.Marshal(given)
		if err != nil {
			t.Fatal(err)
		}
		fail := func(format string, args ...any) {
			t.Helper()
			t.Errorf("-seed %d: %s with\n%s", seed, fmt.Sprintf(format, args...), text)
		}
		files, err := render(c, given, defaultNamespace)
		if err != nil {
			if !strings.Contains(err.Error(), "a monitor finds nothing") {
				fail("%v", err)
			}
			continue
		}
		made++
		delete(files, notes)
		for _, name := range slices.Sorted(maps.Keys(files)) {
			for _, document := range strings.Split("\n"+files[name], "\n---\n") {
				if asked[document] {
					continue
				}
				asked[document] = true
				if err := valid(t, cluster, document); err != nil {
					fail("%s: %v", name, err)
				}
			}
		}
		if t.Failed() && i > 20 {
			break // enough to see
		}
	}
	t.Logf("first seed %d: %d of %d values made objects, %d different ones", *firstSeed, made, *seeds, len(asked))
	if made < *seeds/2 {
		t.Errorf("%d of %d values made something", made, *seeds)
	}
}

// valid says what is wrong with a document.
func valid(t *testing.T, cluster client.Client, document string) error {
	t.Helper()
	var object unstructured.Unstructured
	if err := yaml.UnmarshalStrict([]byte(document), &object.Object); err != nil || object.Object == nil {
		return err
	}
	return taken(t, cluster, &object)
}

// taken says what is wrong with an object. The API server does not know those of Prometheus' operator and of OpenShift; their
// types do.
func taken(t *testing.T, cluster client.Client, object *unstructured.Unstructured) error {
	t.Helper()
	var typed any
	switch object.GetKind() {
	case "PodMonitor":
		typed = &monitoring.PodMonitor{}
	case "ServiceMonitor":
		typed = &monitoring.ServiceMonitor{}
	case "PrometheusRule":
		typed = &monitoring.PrometheusRule{}
	case "SecurityContextConstraints":
		typed = &security.SecurityContextConstraints{}
	default:
		return cluster.Create(t.Context(), object.DeepCopy(), client.DryRunAll)
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, typed, true)
}

// apiServer is a client of one that knows the chart's kinds, and refuses fields that it does not know. A plugin of admission
// may have a configuration, as YAML.
func apiServer(t *testing.T, plugin, configuration string) client.Client {
	t.Helper()
	programs := os.Getenv("TEMPER_KUBERNETES")
	e := &envtest.Environment{CRDDirectoryPaths: []string{folder + "/crds"}, ErrorIfCRDPathMissing: true, ControlPlaneStartTimeout: 2 * time.Minute}
	e.ControlPlane.GetAPIServer().Path = filepath.Join(programs, "kube-apiserver")
	e.ControlPlane.Etcd = &envtest.Etcd{Path: filepath.Join(programs, "etcd"), StartTimeout: 2 * time.Minute}
	if plugin != "" {
		file := filepath.Join(t.TempDir(), "admission.yaml")
		text := "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n- name: " + plugin + "\n  configuration:" + configuration
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		e.ControlPlane.GetAPIServer().Configure().Set("admission-control-config-file", file)
	}
	config, err := e.Start()
	if err != nil {
		t.Fatalf("the API server does not start; 'make kubernetes' builds it: %v", err)
	}
	t.Cleanup(func() {
		if err := e.Stop(); err != nil {
			t.Error(err)
		}
	})
	config.QPS = -1
	cluster, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return client.WithFieldValidation(cluster, metav1.FieldValidationStrict)
}

// home makes a namespace.
func home(t *testing.T, cluster client.Client, name string, labels map[string]string) {
	t.Helper()
	if err := cluster.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}); err != nil {
		t.Fatal(err)
	}
}
