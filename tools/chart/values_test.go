package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/strvals"
)

// Each value is said to somebody: another one makes another object, or another note.
func TestEachValue(t *testing.T) {
	standard := made(t, "")
	cases := map[string]struct{ values, file, want string }{
		"image.repository":                 {"image: {repository: example.org/temper}", "agent.yaml", "image: \"example.org/temper:" + load(t).AppVersion() + "\"\n"},
		"image.tag":                        {"image: {tag: v2}", "agent.yaml", "image: \"temper.dev/temper:v2\"\n"},
		"image.digest":                     {"image: {digest: 'sha256:" + strings.Repeat("0a", 32) + "', tag: v2}", "agent.yaml", "image: \"temper.dev/temper@sha256:" + strings.Repeat("0a", 32) + "\"\n"},
		"image.registry":                   {"image: {registry: 'mirror.example.org:5000/a'}", "agent.yaml", "image: \"mirror.example.org:5000/a/temper:" + load(t).AppVersion() + "\"\n"},
		"commonLabels":                     {"commonLabels: {team: core, app.kubernetes.io/name: other}", "agent.yaml", "        app.kubernetes.io/part-of: temper\n        team: core\n"},
		"podLabels":                        {"podLabels: {team: core, app.kubernetes.io/name: other}", "agent.yaml", "        app.kubernetes.io/part-of: temper\n        team: core\n"},
		"podAnnotations":                   {"podAnnotations: {a/b: 'true'}", "agent.yaml", "      annotations:\n        a/b: \"true\"\n"},
		"serviceAccount.create":            {"serviceAccount: {create: false}", "agent-rbac.yaml", "kind: ClusterRole\n"},
		"serviceAccount.name":              {"serviceAccount: {name: agents}", "agent.yaml", "serviceAccountName: \"agents\"\n"},
		"serviceAccount.annotations":       {"serviceAccount: {annotations: {a/b: c}}", "agent-rbac.yaml", "  annotations:\n    a/b: c\n"},
		"rbac.aggregate":                   {"rbac: {aggregate: false}", "rbac.yaml", ""},
		"logLevel":                         {"logLevel: debug", "agent.yaml", "- --log-level=debug\n"},
		"extraEnv":                         {"extraEnv: [{name: HTTPS_PROXY, value: p}]", "agent.yaml", "        - name: HTTPS_PROXY\n          value: p\n"},
		"extraVolumes":                     {"extraVolumes: [{name: more, emptyDir: {}}]", "agent.yaml", "      - emptyDir: {}\n        name: more\n"},
		"extraVolumeMounts":                {"extraVolumeMounts: [{name: run, mountPath: /more}]", "agent.yaml", "        - mountPath: /more\n          name: run\n"},
		"securityContext":                  {"securityContext: {seccompProfile: {type: Unconfined}}", "agent.yaml", "seccompProfile:\n            type: Unconfined\n"},
		"updateStrategy":                   {"updateStrategy: OnDelete", "agent.yaml", "  updateStrategy:\n    type: OnDelete\n  template:\n"},
		"image.pullPolicy":                 {"image: {pullPolicy: Always}", "agent.yaml", "imagePullPolicy: Always\n"},
		"imagePullSecrets":                 {"imagePullSecrets: [{name: registry}]", "agent.yaml", "imagePullSecrets:\n      - name: registry\n"},
		"resources.requests":               {"resources: {requests: {cpu: 20m}}", "agent.yaml", "cpu: 20m\n            memory: 50Mi\n"},
		"resources.limits":                 {"resources: {limits: {memory: 1Gi}}", "agent.yaml", "memory: 1Gi\n"},
		"nodeSelector":                     {"nodeSelector: {pool: latency}", "agent.yaml", "kubernetes.io/os: linux\n        pool: latency\n"},
		"affinity":                         {"affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}", "agent.yaml", "affinity:\n        nodeAffinity:\n"},
		"tolerations":                      {"tolerations: [{key: gpu, operator: Exists}]", "agent.yaml", "tolerations:\n      - key: gpu\n        operator: Exists\n"},
		"priorityClassName":                {"priorityClassName: node", "agent.yaml", "priorityClassName: \"node\"\n"},
		"appArmorProfile.type":             {"appArmorProfile: {type: Localhost, localhostProfile: own}", "agent.yaml", "appArmorProfile:\n            localhostProfile: own\n            type: Localhost\n"},
		"appArmorProfile.localhostProfile": {"appArmorProfile: {type: Localhost, localhostProfile: temper-agent}", "agent.yaml", "localhostProfile: temper-agent\n"},
		"seLinuxOptions.type":              {"seLinuxOptions: {type: temper_agent_t}", "agent.yaml", "seLinuxOptions:\n            type: temper_agent_t\n"},
		"maxUnavailable":                   {"maxUnavailable: 10%", "agent.yaml", "rollingUpdate: {maxUnavailable: 10%}\n"},
		"minReadySeconds":                  {"minReadySeconds: 0", "agent.yaml", "minReadySeconds: 0\n"},
		"readinessPort":                    {"readinessPort: 9999", "agent.yaml", "- --ready=127.0.0.1:9999\n"},
		"heartbeatTimeoutSeconds":          {"heartbeatTimeoutSeconds: 3600", "agent.yaml", "- --heartbeat-timeout=3600s\n"},
		"apiServer.host":                   {"apiServer: {host: 10.99.0.1}", "agent.yaml", "{name: KUBERNETES_SERVICE_HOST, value: \"10.99.0.1\"}\n"},
		"apiServer.port":                   {"apiServer: {host: 10.99.0.1, port: 6443}", "agent.yaml", "{name: KUBERNETES_SERVICE_PORT, value: \"6443\"}\n"},
		"hostPaths.cgroup":                 {"hostPaths: {cgroup: /host/cgroup}", "agent.yaml", "- {name: cgroup, hostPath: {path: /host/cgroup, type: Directory}}\n"},
		"hostPaths.bpf":                    {"hostPaths: {bpf: /host/bpf}", "agent.yaml", "- {name: bpf, hostPath: {path: /host/bpf, type: Directory}}\n"},
		"hostPaths.run":                    {"hostPaths: {run: /var/run/temper}", "agent.yaml", "- {name: run, hostPath: {path: /var/run/temper, type: DirectoryOrCreate}}\n"},
		"hostPaths.etc":                    {"hostPaths: {etc: /var/lib/temper}", "agent.yaml", "- {name: etc, hostPath: {path: /var/lib/temper, type: DirectoryOrCreate}}\n"},
		"systemCgroups":                    {"systemCgroups: [/runtime.slice, /a/b]", "agent.yaml", "- \"--system-cgroup=/runtime.slice\"\n        - \"--system-cgroup=/a/b\"\n"},
		"resourceQuota.create":             {"resourceQuota: {create: true}", "resourcequota.yaml", "      values:\n      - system-node-critical\n"},
		"scc.create":                       {"scc: {create: true}", "scc.yaml", "kind: SecurityContextConstraints\n"},
		"nri.socket":                       {"nri: {socket: /run/other/nri.sock}", "agent.yaml", "- \"--nri=/run/other/nri.sock\"\n"},
		"metrics.address":                  {"metrics: {address: ':9770'}", "agent.yaml", "- \"--metrics=:9770\"\n"},
		"monitoring.podMonitor":            {"metrics: {address: ':9770'}\nmonitoring: {podMonitor: true}", "monitoring.yaml", "kind: PodMonitor\n"},
		"monitoring.serviceMonitor":        {"metrics: {address: ':9770'}\nmonitoring: {serviceMonitor: true}", "monitoring.yaml", "kind: ServiceMonitor\n"},
		"monitoring.prometheusRule":        {"monitoring: {prometheusRule: true}", "monitoring.yaml", "kind: PrometheusRule\n"},
		"monitoring.runbookURL":            {"monitoring: {prometheusRule: true, runbookURL: 'https://docs.example.org/runbooks.html'}", "monitoring.yaml", "runbook_url: https://docs.example.org/runbooks.html#tempernotenforced\n"},
		"monitoring.labels":                {"monitoring: {prometheusRule: true, labels: {release: prometheus}}", "monitoring.yaml", "release: prometheus\n"},
		"monitoring.dashboard":             {"monitoring: {dashboard: true}", "monitoring.yaml", "kind: ConfigMap\n"},
		"safeMode":                         {"safeMode: true", "agent.yaml", "- --safe-mode\n"},
		"tierPolicy.create":                {"tierPolicy: {create: false}", "tierpolicy.yaml", ""},
		"tierPolicy.nodeSelector":          {"tierPolicy: {nodeSelector: {matchLabels: {pool: latency}}}", "tierpolicy.yaml", "  nodeSelector:\n    matchLabels:\n      pool: latency\n"},
		"priorityClasses.create":           {"priorityClasses: {create: false}", "priorityclasses.yaml", ""},
		"controller.enabled":               {"controller: {enabled: true}", "controller.yaml", "kind: Deployment\n"},
		"controller.replicas":              {"controller: {enabled: true, replicas: 3}", "controller.yaml", "  replicas: 3\n"},
		"controller.probePort":             {"controller: {enabled: true, probePort: 9999}", "controller.yaml", "- --probes=:9999\n"},
		"controller.metricsPort":           {"controller: {enabled: true, metricsPort: 9773}", "controller.yaml", "- --metrics=:9773\n"},
		"controller.resources.requests":    {"controller: {enabled: true, resources: {requests: {cpu: 20m}}}", "controller.yaml", "cpu: 20m\n            memory: 64Mi\n"},
		"controller.resources.limits":      {"controller: {enabled: true, resources: {limits: {memory: 1Gi}}}", "controller.yaml", "memory: 1Gi\n"},
		"controller.priorityClassName":     {"controller: {enabled: true, priorityClassName: other}", "controller.yaml", "priorityClassName: \"other\"\n"},
		"controller.tolerations":           {"controller: {enabled: true, tolerations: [{key: gpu, operator: Exists}]}", "controller.yaml", "tolerations:\n      - key: gpu\n        operator: Exists\n"},
		"admission.create":                 {"admission: {create: false}", "admission.yaml", ""},
		"admission.builtInClasses":         {"admission: {builtInClasses: deny}", "admission.yaml", "policyName: temper-built-in-classes\n  validationActions: [Deny]\n"},
	}
	wide := []string{"commonLabels", "serviceAccount.name", "monitoring.podMonitor", "monitoring.serviceMonitor"} // monitors need another value, too
	both := []string{"controller.yaml", "controller-rbac.yaml"}                                                   // of one switch
	for name, c := range cases {
		files := made(t, c.values)
		if files[c.file] == standard[c.file] || !strings.Contains(files[c.file], c.want) || c.want == "" && files[c.file] != "" {
			t.Errorf("%s: %s makes of %s\n%s", name, c.values, c.file, files[c.file])
		}
		agent(t, files["agent.yaml"])
		for file, text := range files {
			if file != c.file && file != notes && text != standard[file] && !slices.Contains(wide, name) && !(slices.Contains(both, file) && slices.Contains(both, c.file)) {
				t.Errorf("%s: %s changes %s, too", name, c.values, file)
			}
		}
	}
	if got, want := slices.Sorted(maps.Keys(cases)), leaves("", load(t).Values); !slices.Equal(got, want) {
		t.Errorf("values that are tried out:\n%v\nvalues of the chart:\n%v", got, want)
	}
}

// leaves names values: what the chart itself takes one by one.
func leaves(prefix string, values map[string]any) (names []string) {
	for name, value := range values {
		name = strings.TrimPrefix(prefix+"."+name, ".")
		inner, ok := value.(map[string]any)
		switch {
		case ok && len(inner) > 0 && name != "nodeSelector" && !strings.HasSuffix(prefix, "resources"):
			names = append(names, leaves(name, inner)...)
		default:
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// What is wrong is refused before anything is made, with the value's name and what would be right.
func TestSchemaRefuses(t *testing.T) {
	for values, want := range map[string][]string{
		"heartbeatTimeoutSeconds: 1":                        {"heartbeatTimeoutSeconds", "minimum: got 1, want 2"},
		"heartbeatTimeoutSeconds: 3601":                     {"heartbeatTimeoutSeconds", "maximum: got 3,601, want 3,600"},
		"heartbeatTimeoutSeconds: 2.5":                      {"heartbeatTimeoutSeconds", "want integer"},
		"heartbeatTimeoutSeconds: 60s":                      {"heartbeatTimeoutSeconds", "got string, want integer"},
		"heartbeatTimeout: 60s":                             {"'heartbeatTimeout' not allowed"},
		"image: {tag: 'a b'}":                               {"image/tag", "a b"},
		"image: {digest: 'sha256:1'}":                       {"image/digest"},
		"image: {repository: ''}":                           {"image/repository", "does not match pattern"},
		"image: {pullPolicy: Sometimes}":                    {"image/pullPolicy", "'Always', 'IfNotPresent', 'Never'"},
		"imagePullSecrets: [registry]":                      {"imagePullSecrets/0", "want object"},
		"resources: {limits: {memory: lots}}":               {"resources/limits/memory", "lots"},
		"resources: {limit: {memory: 1Gi}}":                 {"resources", "'limit' not allowed"},
		"nodeSelector: {gpu: true}":                         {"nodeSelector/gpu", "got boolean, want string"},
		"tolerations: [all]":                                {"tolerations/0", "want object"},
		"priorityClassName: 7":                              {"priorityClassName", "want string"},
		"appArmorProfile: {type: RuntimeDefault}":           {"appArmorProfile/type", "'Unconfined'", "'Localhost'"},
		"appArmorProfile: {type: Localhost}":                {"appArmorProfile/localhostProfile", "does not match pattern"},
		"appArmorProfile: {localhostProfile: temper-agent}": {"appArmorProfile/localhostProfile"}, // it would not be in force
		"seLinuxOptions: {level: s0}":                       {"seLinuxOptions", "'level' not allowed"},
		"seLinuxOptions: {type: 'spc_t, level: s0'}":        {"seLinuxOptions/type"},
		"maxUnavailable: 0":                                 {"maxUnavailable", "minimum"},
		"maxUnavailable: 0%":                                {"maxUnavailable", "0%"},
		"minReadySeconds: -1":                               {"minReadySeconds", "minimum"},
		"readinessPort: 0":                                  {"readinessPort", "minimum"},
		"apiServer: {host: 'https://10.0.0.1'}":             {"apiServer/host", "https://10.0.0.1"},
		"apiServer: {port: 70000}":                          {"apiServer/port", "65,535"},
		"apiServer: {port: '443'}":                          {"apiServer/port", "want integer"},
		"hostPaths: {etc: ''}":                              {"hostPaths/etc", "does not match pattern"},
		"hostPaths: {etc: etc/temper}":                      {"hostPaths/etc", "etc/temper"},
		"hostPaths: {etc: /etc}":                            {"hostPaths/etc", "'/etc'"}, // more of the node than its own
		"hostPaths: {etc: /var/../etc}":                     {"hostPaths/etc", "/var/../etc"},
		"hostPaths: {proc: /proc/x}":                        {"hostPaths", "'proc' not allowed"},
		"systemCgroups: [runtime.slice]":                    {"systemCgroups/0", "runtime.slice"},
		"systemCgroups: [/]":                                {"systemCgroups/0", "'/'"},
		"systemCgroups: [/sys/fs/cgroup/a]":                 {"systemCgroups/0", "'not' failed"},
		"resourceQuota: {pods: 3}":                          {"resourceQuota", "'pods' not allowed"},
		"scc: {create: 1}":                                  {"scc/create", "want boolean"},
		"nri: {socket: nri.sock}":                           {"nri/socket", "nri.sock"},
		"nri: {socket: /nri.sock}":                          {"nri/socket", "nri.sock"}, // the node's whole file system would be mounted
		"metrics: {address: '9770'}":                        {"metrics/address", "9770"},
		"monitoring: {podMonitor: true}":                    {"a monitor finds nothing without metrics.address"},
		"metrics: {address: ':0'}":                          {"metrics/address", ":0"},
		"metrics: {address: ':65536'}":                      {"metrics/address", ":65536"},
		"metrics: {address: '127.0.0.1:9770'}\nmonitoring: {podMonitor: true}": {"which the node alone reaches", "as in :9770"},
		"metrics: {address: 'localhost:9770'}\nmonitoring: {podMonitor: true}": {"which the node alone reaches"},
		"metrics: {address: '[::1]:9770'}\nmonitoring: {podMonitor: true}":     {"which the node alone reaches"},
		"monitoring: {serviceMonitor: true}":                                   {"a monitor finds nothing without metrics.address"},
		"commonLabels: {team: 'a b'}":                                          {"commonLabels/team", "a b"},
		"podLabels: {'a b': c}":                                                {"invalid propertyName 'a b'"},
		"serviceAccount: {name: 'a.*'}":                                        {"serviceAccount/name", "a.*"},
		"logLevel: loud":                                                       {"logLevel", "'debug', 'info', 'warn', 'error'"},
		"updateStrategy: Recreate":                                             {"updateStrategy", "'RollingUpdate', 'OnDelete'"},
		"extraEnv: [{value: v}]":                                               {"extraEnv/0", "name"},
		"monitoring: {runbookURL: 'docs/a b'}":                                 {"runbookURL", "pattern"},
		"monitoring: {rules: true}":                                            {"monitoring", "'rules' not allowed"},
		"controller: {replicas: 0}":                                            {"controller/replicas", "minimum"},
		"controller: {enabled: 1}":                                             {"controller/enabled", "want boolean"},
		"controller: {probePort: 80}":                                          {"controller/probePort", "minimum"},
		"controller: {metricsPort: 80}":                                        {"controller/metricsPort"},
		"controller: {enabled: true, metricsPort: 9772}":                       {"controller.metricsPort and controller.probePort are the same"},
		"safeMode: 'no'":                                                       {"safeMode", "want boolean"},
		"tierPolicy: {nodeSelector: {pool: latency}}":                          {"tierPolicy/nodeSelector", "'pool' not allowed"},
		"tierPolicy: {nodeSelector: {matchLabels: {pool: 1}}}":                 {"tierPolicy/nodeSelector/matchLabels/pool", "want string"},
		"priorityClasses: {create: 1}":                                         {"priorityClasses/create", "want boolean"},
		"admission: {builtInClasses: audit}":                                   {"admission/builtInClasses", "'warn', 'deny'"},
	} {
		_, err := render(load(t), valuesOf(t, values), defaultNamespace)
		if err == nil {
			t.Errorf("%s is taken", values)
			continue
		}
		for _, text := range want {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %q does not say %q", values, err, text)
			}
		}
	}
	for _, values := range []string{"heartbeatTimeoutSeconds: 0", "heartbeatTimeoutSeconds: 2", "maxUnavailable: 3", "metrics: {address: '127.0.0.1:9770'}", "metrics: {address: '[::1]:9770'}", "metrics: {address: ':65535'}", "metrics: {address: ':1'}", "tolerations: []", "apiServer: {host: 'fd00::1'}"} {
		if _, err := render(load(t), valuesOf(t, values), defaultNamespace); err != nil {
			t.Errorf("%s: %v", values, err)
		}
	}
}

// The schema knows each object's members, at all depths, so that no misspelt value passes for nothing.
func TestSchemaIsClosed(t *testing.T) {
	var schema map[string]any
	if err := json.Unmarshal(load(t).Schema, &schema); err != nil {
		t.Fatal(err)
	}
	var walk func(path string, node any)
	walk = func(path string, node any) {
		object, ok := node.(map[string]any)
		if !ok {
			return
		}
		if _, has := object["properties"]; has && object["additionalProperties"] != false && path != "" {
			t.Errorf("%s takes what it does not know", path)
		}
		for name, inner := range object {
			walk(path+"/"+name, inner)
		}
	}
	walk("#", schema)
}

// What pages give to Helm by --set, the chart takes.
func TestValuesOfDocuments(t *testing.T) {
	set := regexp.MustCompile(`--set(?:-string)? ['"]?([A-Za-z][^\s'"]*)`)
	tried := 0
	err := filepath.WalkDir("../../docs", func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".md" {
			return err
		}
		page, err := os.ReadFile(path)
		for _, m := range set.FindAllSubmatch(page, -1) {
			tried++
			values := map[string]any{}
			if err := strvals.ParseInto(strings.TrimRight(string(m[1]), "`,.;:)"), values); err != nil {
				t.Errorf("%s: %s: %v", path, m[0], err)
			} else if _, err := render(load(t), values, defaultNamespace); err != nil {
				t.Errorf("%s: %s: %v", path, m[0], err)
			}
		}
		return err
	})
	if err != nil || tried == 0 {
		t.Errorf("%d values were tried: %v", tried, err)
	}
}
