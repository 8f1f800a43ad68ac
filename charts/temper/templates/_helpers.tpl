{{/* Labels of an object, of the name that is given: Kubernetes' recommended ones, which commonLabels add to. */}}
{{- define "temper.labels" -}}
{{- $root := index . 0 }}
{{- $own := dict "app.kubernetes.io/name" (index . 1) "app.kubernetes.io/instance" $root.Release.Name "app.kubernetes.io/version" $root.Chart.AppVersion "app.kubernetes.io/part-of" "temper" }}
{{- merge $own $root.Values.commonLabels | toYaml }}
{{- end }}

{{/* Labels of the agents' pods. The first selects them, and cannot be another; a version would only repeat the image's. */}}
{{- define "temper.podLabels" -}}
{{- $own := dict "app.kubernetes.io/name" "temper-agent" "app.kubernetes.io/instance" .Release.Name "app.kubernetes.io/part-of" "temper" }}
{{- merge $own .Values.podLabels .Values.commonLabels | toYaml }}
{{- end }}

{{/* Labels of the controller's pods, as above. */}}
{{- define "temper.controllerLabels" -}}
{{- $own := dict "app.kubernetes.io/name" "temper-controller" "app.kubernetes.io/instance" .Release.Name "app.kubernetes.io/part-of" "temper" }}
{{- merge $own .Values.commonLabels | toYaml }}
{{- end }}

{{/* image.registry takes the place of the repository's first part. */}}
{{- define "temper.image" -}}
{{- with .Values.image }}
{{- if .registry }}{{ regexReplaceAll "^[^/]+" .repository .registry }}{{ else }}{{ .repository }}{{ end }}
{{- if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{/* What the agent's container may do. BPF and PERFMON load and pin the scheduler; SYS_NICE sets tasks' policies, from
real-time threads: to keep a detach from starving, and for RT throttling. The default AppArmor profiles of
container runtimes forbid any write below /sys/fs/bpf, where the scheduler is pinned. */}}
{{- define "temper.securityContext" -}}
readOnlyRootFilesystem: true
seccompProfile: {type: RuntimeDefault}
{{- with .Values.appArmorProfile }}
appArmorProfile: {type: {{ .type }}{{ with .localhostProfile }}, localhostProfile: {{ quote . }}{{ end }}}
{{- end }}
{{- with .Values.seLinuxOptions.type }}
seLinuxOptions: {type: {{ quote . }}}
{{- end }}
capabilities:
  drop: [ALL]
  add: [BPF, PERFMON, SYS_NICE]
{{- end }}
