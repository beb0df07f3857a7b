{{- define "pinwheel.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{/* At most 50 letters: names of objects have suffixes, and may have 63. */}}
{{- define "pinwheel.fullname" -}}
{{- $name := include "pinwheel.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "pinwheel.selectorLabels" -}}
app.kubernetes.io/name: {{ include "pinwheel.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "pinwheel.labels" -}}
{{ include "pinwheel.selectorLabels" . }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | trunc 63 | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 }}
{{- end -}}

{{- define "pinwheel.metadata" -}}
namespace: {{ .Release.Namespace }}
labels:
  {{- include "pinwheel.labels" . | nindent 2 }}
{{- end -}}

{{- define "pinwheel.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "pinwheel.serviceAccountName" -}}
{{- .Values.serviceAccount.name | default (include "pinwheel.fullname" .) -}}
{{- end -}}

{{- define "pinwheel.secretName" -}}
{{- .Values.secrets.name | default (include "pinwheel.fullname" .) -}}
{{- end -}}

{{/* The keys of the Secret that are used, as JSON. */}}
{{- define "pinwheel.secretKeys" -}}
{{- if .Values.secrets.name -}}
{{- .Values.secrets.use | sortAlpha | toJson -}}
{{- else -}}
{{- keys .Values.secrets.create | sortAlpha | toJson -}}
{{- end -}}
{{- end -}}

{{/* The name that NATS' own chart gives to its objects. */}}
{{- define "pinwheel.natsName" -}}
{{- $nats := .Values.nats -}}
{{- if $nats.fullnameOverride -}}
{{- $nats.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- $name := $nats.nameOverride | default "nats" -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "pinwheel.natsURL" -}}
{{- if .Values.nats.enabled -}}
nats://{{ include "pinwheel.natsName" . }}:4222
{{- else -}}
{{- join "," .Values.connection.urls -}}
{{- end -}}
{{- end -}}

{{- define "pinwheel.natsServers" -}}
{{- if .Values.nats.config.cluster.enabled -}}{{ .Values.nats.config.cluster.replicas }}{{- else -}}1{{- end -}}
{{- end -}}

{{- define "pinwheel.natsMonitor" -}}
{{- if .Values.nats.enabled -}}
{{- $name := include "pinwheel.natsName" . -}}
{{- $urls := list -}}
{{- range $i := until (include "pinwheel.natsServers" . | int) -}}
{{- $urls = append $urls (printf "http://%s-%d.%s-headless:8222" $name $i $name) -}}
{{- end -}}
{{- join "," $urls -}}
{{- else -}}
{{- join "," .Values.connection.monitor -}}
{{- end -}}
{{- end -}}

{{- define "pinwheel.copies" -}}
{{- if .Values.connection.copies -}}
{{- .Values.connection.copies -}}
{{- else if and .Values.nats.enabled (ge (include "pinwheel.natsServers" . | int) 3) -}}
3
{{- else -}}
1
{{- end -}}
{{- end -}}

{{/* What several values must be together: the schema sees each alone. */}}
{{- define "pinwheel.check" -}}
{{- $v := .Values -}}
{{- $keys := include "pinwheel.secretKeys" . | fromJsonArray -}}
{{- if and $v.nats.enabled $v.connection.urls -}}
{{- fail "connection.urls and nats.enabled exclude each other: the fleet has one NATS" -}}
{{- end -}}
{{- if not (or $v.nats.enabled $v.connection.urls) -}}
{{- fail "set connection.urls, or nats.enabled for a NATS of its own" -}}
{{- end -}}
{{- if and $v.secrets.name $v.secrets.create -}}
{{- fail "secrets.name and secrets.create exclude each other" -}}
{{- end -}}
{{- if and $v.secrets.use (not $v.secrets.name) -}}
{{- fail "secrets.use says which keys the Secret secrets.name has: set secrets.name" -}}
{{- end -}}
{{- $ways := list -}}
{{- range list "nats.creds" "nats.nk" "nats-user" "nats-token" -}}
{{- if has . $keys -}}{{- $ways = append $ways . -}}{{- end -}}
{{- end -}}
{{- if gt (len $ways) 1 -}}
{{- fail (printf "secrets: %s exclude each other: there is one way to connect to NATS" (join ", " $ways)) -}}
{{- end -}}
{{- if ne (has "nats-user" $keys) (has "nats-password" $keys) -}}
{{- fail "secrets: nats-user and nats-password go together" -}}
{{- end -}}
{{- if and $v.console.enabled (not (or (has "control-token" $keys) (has "console-token" $keys))) -}}
{{- fail "console.enabled needs control-token or console-token in secrets" -}}
{{- end -}}
{{- if and (ne $v.scaling.kind "none") (gt (int $v.scaling.min) (int $v.scaling.max)) -}}
{{- fail "scaling.min is above scaling.max" -}}
{{- end -}}
{{- $ports := list ($v.admin.port | int) -}}
{{- if $v.http.enabled -}}{{- $ports = append $ports ($v.http.port | int) -}}{{- end -}}
{{- if $v.console.enabled -}}{{- $ports = append $ports ($v.console.port | int) -}}{{- end -}}
{{- if ne (len $ports) (len (uniq $ports)) -}}
{{- fail "http.port, console.port and admin.port are different ports" -}}
{{- end -}}
{{- end -}}
