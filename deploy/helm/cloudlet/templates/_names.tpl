{{- /* No function of Helm's own is used in these files: any engine for Go templates renders them. */ -}}
{{- define "labels" -}}
{ app.kubernetes.io/name: cloudlet, app.kubernetes.io/instance: {{ printf "%q" .Release.Name }} }
{{- end -}}
{{- define "secret" -}}
{{ if .Values.existingSecret }}{{ printf "%q" .Values.existingSecret }}{{ else }}{{ printf "%q" .Release.Name }}{{ end }}
{{- end -}}
