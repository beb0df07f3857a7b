package kube_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	kedav1alpha1 "github.com/kedacore/keda/v2/apis/keda/v1alpha1"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

// sets are the sets of values of testdata, and what comes of each.
var sets = map[string][]string{
	"address": {"Deployment/prod-pinwheel", "NetworkPolicy/prod-pinwheel", "PodDisruptionBudget/prod-pinwheel",
		"Service/prod-pinwheel", "Service/prod-pinwheel-admin", "ServiceAccount/prod-pinwheel"},
	"nats": {"Deployment/prod-pinwheel", "NetworkPolicy/prod-pinwheel", "PodDisruptionBudget/prod-pinwheel",
		"Service/prod-pinwheel", "Service/prod-pinwheel-admin", "ServiceAccount/prod-pinwheel"},
	"secured": {"Deployment/prod-pinwheel", "NetworkPolicy/prod-pinwheel", "PodDisruptionBudget/prod-pinwheel",
		"Service/prod-pinwheel", "Service/prod-pinwheel-admin", "ServiceAccount/prod-pinwheel"},
	"created": {"Deployment/prod-pinwheel", "NetworkPolicy/prod-pinwheel", "PodDisruptionBudget/prod-pinwheel",
		"Secret/prod-pinwheel", "Service/prod-pinwheel", "Service/prod-pinwheel-admin", "ServiceAccount/prod-pinwheel"},
	"keda": {"ConfigMap/prod-pinwheel-dashboard", "Deployment/prod-pinwheel", "NetworkPolicy/prod-pinwheel",
		"PodDisruptionBudget/prod-pinwheel", "PrometheusRule/prod-pinwheel", "ScaledObject/prod-pinwheel",
		"Service/prod-pinwheel", "Service/prod-pinwheel-admin", "ServiceAccount/prod-pinwheel",
		"ServiceMonitor/prod-pinwheel"},
	"hpa": {"Deployment/prod-pinwheel", "HorizontalPodAutoscaler/prod-pinwheel", "NetworkPolicy/prod-pinwheel",
		"PodDisruptionBudget/prod-pinwheel", "Service/prod-pinwheel", "Service/prod-pinwheel-admin",
		"ServiceAccount/prod-pinwheel"},
	"bare": {"Deployment/prod-pinwheel", "Service/prod-pinwheel-admin"},
	"named": {"Deployment/the-workers-of-the-department-of-events-and-other", "NetworkPolicy/the-workers-of-the-department-of-events-and-other",
		"PodDisruptionBudget/the-workers-of-the-department-of-events-and-other",
		"Service/the-workers-of-the-department-of-events-and-other",
		"Service/the-workers-of-the-department-of-events-and-other-admin",
		"ServiceAccount/the-workers-of-the-department-of-events-and-other"},
}

// Eight sets of values give objects that the API server decodes, and that fit each other.
func TestChartRenders(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	require.NoError(t, err)
	require.Len(t, files, len(sets), "each set of values is in the table")
	for set, want := range sets {
		t.Run(set, func(t *testing.T) {
			list := install(t, set)
			var got []string
			for _, o := range list {
				got = append(got, o.name())
			}
			slices.Sort(got)
			require.Equal(t, want, got)
			require.NoError(t, fits(list, namespace))
		})
	}
}

// Names of releases are up to 53 letters long, those of Services up to 63.
func TestLongNameOfARelease(t *testing.T) {
	text, err := render("r"+strings.Repeat("-long", 10)+"-1", values(t, read(t, ".ci/kube/testdata/keda.yaml")))
	require.NoError(t, err)
	list, err := decode(text)
	require.NoError(t, err)
	require.NoError(t, fits(list, namespace))
}

// What decodes objects here refuses what is misspelt.
func TestDecodingIsStrict(t *testing.T) {
	text, err := render("prod", values(t, read(t, ".ci/kube/testdata/keda.yaml")))
	require.NoError(t, err)
	for _, from := range []string{"periodSeconds:", "maxUnavailable:", "podSelector:", "targetLabel:", "pollingInterval:",
		"automountServiceAccountToken:"} {
		require.Contains(t, text, from)
		_, err := decode(strings.Replace(text, from, "x"+from, 1))
		require.ErrorContains(t, err, "unknown field", from)
	}
}

// helm lint finds nothing but the chart of NATS, which helm dependency update brings.
func TestChartPassesLint(t *testing.T) {
	chart, err := filepath.Abs(chartDir)
	require.NoError(t, err)
	for set := range sets {
		found := lint.RunAll(chart, values(t, read(t, ".ci/kube/testdata/"+set+".yaml")), namespace)
		for _, m := range found.Messages {
			if m.Severity > support.InfoSev && !strings.Contains(m.Error(), "missing these dependencies: nats") {
				t.Errorf("%s: %s", set, m.Error())
			}
		}
	}
}

// env returns the variables of the container. What comes from elsewhere, such as a Secret, has the value "?": secrets
// are files.
func env(d *appsv1.Deployment) map[string]string {
	all := map[string]string{}
	for _, e := range d.Spec.Template.Spec.Containers[0].Env {
		all[e.Name] = e.Value
		if e.ValueFrom != nil {
			all[e.Name] = "?"
		}
	}
	return all
}

// Values reach the variables that they are for.
func TestVariablesOfPods(t *testing.T) {
	common := map[string]string{"PINWHEEL_ADMIN_ADDR": ":8422", "PINWHEEL_HTTP_ADDR": ":8080",
		"PINWHEEL_LOG_FORMAT":    "json",
		"PINWHEEL_DRAIN_TIMEOUT": "30s", "PINWHEEL_PROCESSES": "1", "PINWHEEL_REPLICAS": "1", "PINWHEEL_HEAP_MAX": "2GiB"}
	for set, more := range map[string]map[string]string{
		"address": {"PINWHEEL_NATS_URL": "nats://nats.example:4222"},
		"nats": {"PINWHEEL_NATS_URL": "nats://prod-nats:4222", "PINWHEEL_REPLICAS": "3",
			"PINWHEEL_NATS_MONITOR": "http://prod-nats-0.prod-nats-headless:8222,http://prod-nats-1.prod-nats-headless:8222,http://prod-nats-2.prod-nats-headless:8222"},
		"secured": {"PINWHEEL_NATS_URL": "tls://a.nats.example:4443,tls://b.nats.example:4443,tls://c.nats.example",
			"PINWHEEL_NATS_MONITOR": "http://a.nats.example:8222,http://b.nats.example:8222,http://c.nats.example:8222",
			"PINWHEEL_REPLICAS":     "3", "PINWHEEL_NATS_CREDS": "/etc/pinwheel/secrets/nats.creds",
			"PINWHEEL_NATS_CA": "/etc/pinwheel/nats-ca/ca.crt", "PINWHEEL_NATS_CERT": "/etc/pinwheel/nats-cert/tls.crt",
			"PINWHEEL_NATS_KEY": "/etc/pinwheel/nats-cert/tls.key", "PINWHEEL_SECRETS_KEY": "/etc/pinwheel/secrets/age.key",
			"PINWHEEL_CONTROL_TOKEN_FILE": "/etc/pinwheel/secrets/control-token", "PINWHEEL_HTTP_DOMAIN": "workers.example",
			"PINWHEEL_HTTP_TRUST": "10.0.0.0/8", "PINWHEEL_HTTP_CERT": "/etc/pinwheel/http/tls.crt",
			"PINWHEEL_HTTP_KEY": "/etc/pinwheel/http/tls.key"},
		"created": {"PINWHEEL_NATS_URL": "nats://bus:4222", "PINWHEEL_NATS_MONITOR": "http://bus-0.bus-headless:8222",
			"PINWHEEL_NATS_USER_FILE":     "/etc/pinwheel/secrets/nats-user",
			"PINWHEEL_NATS_PASSWORD_FILE": "/etc/pinwheel/secrets/nats-password",
			"PINWHEEL_SECRETS_KEY":        "/etc/pinwheel/secrets/age.key",
			"PINWHEEL_CONTROL_TOKEN_FILE": "/etc/pinwheel/secrets/control-token",
			"PINWHEEL_CONSOLE_TOKEN_FILE": "/etc/pinwheel/secrets/console-token", "PINWHEEL_CONSOLE_ADDR": ":8424",
			"PINWHEEL_CONSOLE_HOSTS": "console.example"},
		"keda": {"PINWHEEL_NATS_URL": "nats://nats.example", "PINWHEEL_PROCESSES": "4"},
		"named": {"PINWHEEL_NATS_URL": "nats://nats.example:4222",
			"PINWHEEL_NATS_TOKEN_FILE":    "/etc/pinwheel/secrets/nats-token",
			"PINWHEEL_CONTROL_TOKEN_FILE": "/etc/pinwheel/secrets/control-token",
			"PINWHEEL_THREADS":            "8", "PINWHEEL_CONSOLE_ADDR": ":8424",
			"PINWHEEL_REPLY_PREFIXES": "_INBOX.{owner}.", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector.tracing:4318",
			"GOGC": "200"},
	} {
		want := maps.Clone(common)
		maps.Copy(want, more)
		require.Equal(t, want, env(one[*appsv1.Deployment](t, install(t, set))), set)
	}
	bare := env(one[*appsv1.Deployment](t, install(t, "bare")))
	require.NotContains(t, bare, "PINWHEEL_HTTP_ADDR")
	require.Equal(t, "/etc/pinwheel/secrets/nats.nk", bare["PINWHEEL_NATS_NKEY"])
	require.Equal(t, "0", bare["PINWHEEL_PROCESSES"])
}

// A pod has longer to end than it works on and drains, with the 5 s after which its supervisor kills what still runs.
func TestPodsHaveTimeToDrain(t *testing.T) {
	for set, sleep := range map[string]int64{"address": 5, "keda": 5, "bare": 0} {
		d := one[*appsv1.Deployment](t, install(t, set))
		pod := d.Spec.Template.Spec
		drain, err := time.ParseDuration(env(d)["PINWHEEL_DRAIN_TIMEOUT"])
		require.NoError(t, err)
		grace := time.Duration(*pod.TerminationGracePeriodSeconds) * time.Second
		require.Greater(t, grace, time.Duration(sleep+5)*time.Second+drain, set)
		if sleep == 0 {
			require.Nil(t, pod.Containers[0].Lifecycle, set)
			continue
		}
		require.Equal(t, sleep, pod.Containers[0].Lifecycle.PreStop.Sleep.Seconds, set)
	}
}

// Secrets are files where a variable names a file, and nowhere else in the objects.
func TestSecretsAreOnlyInTheSecret(t *testing.T) {
	text, err := render("prod", values(t, read(t, ".ci/kube/testdata/created.yaml")))
	require.NoError(t, err)
	list, err := decode(text)
	require.NoError(t, err)
	secret := one[*corev1.Secret](t, list)
	require.Equal(t, map[string]string{"nats-user": "fleet", "nats-password": "a: {password}",
		"age.key": "# public key: age1...\nAGE-SECRET-KEY-1...\n", "control-token": "0123456789abcdef",
		"console-token": "fedcba9876543210"}, secret.StringData)
	for _, value := range []string{"{password}", "AGE-SECRET-KEY", "0123456789abcdef", "fedcba9876543210"} {
		require.Equal(t, 1, strings.Count(text, value), value)
	}
	for _, v := range one[*appsv1.Deployment](t, list).Spec.Template.Spec.Volumes {
		if v.Secret != nil {
			var want []corev1.KeyToPath
			for _, key := range slices.Sorted(maps.Keys(secret.StringData)) {
				want = append(want, corev1.KeyToPath{Key: key, Path: key})
			}
			require.Equal(t, want, v.Secret.Items, "no more than it reads")
			require.EqualValues(t, 0o440, *v.Secret.DefaultMode)
		}
	}
	was := one[*appsv1.Deployment](t, list).Spec.Template.Annotations
	changed := values(t, read(t, ".ci/kube/testdata/created.yaml"))
	changed["secrets"].(map[string]any)["create"].(map[string]any)["nats-password"] = "another"
	text, err = render("prod", changed)
	require.NoError(t, err)
	list, err = decode(text)
	require.NoError(t, err)
	require.NotEqual(t, was, one[*appsv1.Deployment](t, list).Spec.Template.Annotations, "pods are replaced")
}

// KEDA asks the port that pods have, and one process wanted is one process.
func TestScaledObject(t *testing.T) {
	list := install(t, "keda")
	scaled := one[*kedav1alpha1.ScaledObject](t, list)
	trigger := scaled.Spec.Triggers[0]
	at, err := url.Parse(trigger.Metadata["url"])
	require.NoError(t, err)
	require.Equal(t, "http://prod-pinwheel-admin.events.svc:8422/scale", at.String())
	require.Equal(t, "wanted", trigger.Metadata["valueLocation"])
	require.Equal(t, "4", trigger.Metadata["targetValue"], "a pod has four processes")
	require.EqualValues(t, "AverageValue", trigger.MetricType)
	require.EqualValues(t, 3, *scaled.Spec.MinReplicaCount)
	require.EqualValues(t, 20, *scaled.Spec.MaxReplicaCount)
	require.EqualValues(t, 3, scaled.Spec.Fallback.Replicas)
	require.NoError(t, kedav1alpha1.CheckFallbackValid(scaled))
	// HPA makes as many pods as the value divided by the target, rounded up, however many there are: "processes: 0" is one
	// process without a supervisor.
	for processes, target := range map[int]string{0: "1", 1: "1", 3: "3"} {
		all := values(t, read(t, ".ci/kube/testdata/keda.yaml"))
		all["processes"] = processes
		text, err := render("prod", all)
		require.NoError(t, err)
		other, err := decode(text)
		require.NoError(t, err)
		require.Equal(t, target, one[*kedav1alpha1.ScaledObject](t, other).Spec.Triggers[0].Metadata["targetValue"])
	}
	d := one[*appsv1.Deployment](t, list)
	require.Equal(t, d.Name, scaled.Spec.ScaleTargetRef.Name)
	require.Nil(t, d.Spec.Replicas, "who scales sets it")
	require.EqualValues(t, 2, *one[*appsv1.Deployment](t, install(t, "address")).Spec.Replicas)
}

func TestHorizontalPodAutoscaler(t *testing.T) {
	list := install(t, "hpa")
	require.Nil(t, one[*appsv1.Deployment](t, list).Spec.Replicas)
	scaler := one[*autoscalingv2.HorizontalPodAutoscaler](t, list)
	require.Equal(t, "pinwheel_scale_wanted", scaler.Spec.Metrics[0].External.Metric.Name)
	text, err := render("prod", values(t, []byte("{connection: {urls: ['nats://n']}, scaling: {kind: hpa, hpa: {cpuPercent: 60}}}")))
	require.NoError(t, err)
	list, err = decode(text)
	require.NoError(t, err)
	scaler = one[*autoscalingv2.HorizontalPodAutoscaler](t, list)
	require.EqualValues(t, 60, *scaler.Spec.Metrics[0].Resource.Target.AverageUtilization)
	pod := one[*appsv1.Deployment](t, list).Spec.Template.Spec
	require.Contains(t, pod.Containers[0].Resources.Requests, corev1.ResourceCPU)
}

// Workers reach public addresses only; the admin port and the console are open to whom the values name.
func TestNetworkPolicy(t *testing.T) {
	ports := func(list []networkingv1.NetworkPolicyPort) (names []string) {
		for _, p := range list {
			names = append(names, p.Port.String())
		}
		return names
	}
	type rule struct {
		ports []string
		peers int
	}
	for set, want := range map[string]struct{ in, out []rule }{
		"address": {[]rule{{[]string{"admin"}, 2}, {[]string{"http"}, 0}},
			[]rule{{[]string{"53", "53"}, 0}, {[]string{"4222"}, 0}, {nil, 2}}},
		"nats": {[]rule{{[]string{"admin"}, 2}, {[]string{"http"}, 0}},
			[]rule{{[]string{"53", "53"}, 0}, {[]string{"4222", "8222"}, 1}, {nil, 2}}},
		"secured": {[]rule{{[]string{"admin"}, 2}, {[]string{"http"}, 0}},
			[]rule{{[]string{"53", "53"}, 0}, {[]string{"4443", "4222", "8222"}, 0}, {nil, 2}}},
		"named": {[]rule{{[]string{"http"}, 1}, {[]string{"console"}, 1}},
			[]rule{{[]string{"53", "53"}, 0}, {[]string{"4222"}, 0}, {nil, 2}, {[]string{"4318"}, 1}}},
	} {
		policy := one[*networkingv1.NetworkPolicy](t, install(t, set))
		var in, out []rule
		for _, r := range policy.Spec.Ingress {
			in = append(in, rule{ports(r.Ports), len(r.From)})
		}
		for _, r := range policy.Spec.Egress {
			out = append(out, rule{ports(r.Ports), len(r.To)})
		}
		require.Equal(t, want.in, in, set)
		require.Equal(t, want.out, out, set)
		public := policy.Spec.Egress[2].To[0].IPBlock
		for _, private := range []string{"10.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16"} {
			require.Contains(t, public.Except, private)
		}
	}
}

// Rules and dashboard are those of deploy/prometheus and deploy/grafana, and their job is that of the ServiceMonitor.
func TestMonitoring(t *testing.T) {
	list := install(t, "keda")
	require.NoError(t, sameMonitoring(t, list))
	monitor := one[*monitoringv1.ServiceMonitor](t, list)
	require.Equal(t, "prometheus", monitor.Labels["release"])
	require.Equal(t, "job", monitor.Spec.Endpoints[0].RelabelConfigs[0].TargetLabel)
	require.Equal(t, "pinwheel", *monitor.Spec.Endpoints[0].RelabelConfigs[0].Replacement)
	require.Contains(t, string(read(t, "deploy/prometheus/alerts.yml")), `job="pinwheel"`)
	require.Equal(t, "prometheus", one[*monitoringv1.PrometheusRule](t, list).Labels["release"])
	require.Equal(t, "1", one[*corev1.ConfigMap](t, list).Labels["grafana_dashboard"])
}

// sameMonitoring compares rules and dashboard with the files that they are made of.
func sameMonitoring(t *testing.T, list objects) error {
	t.Helper()
	var want monitoringv1.PrometheusRuleSpec
	require.NoError(t, yaml.UnmarshalStrict(read(t, "deploy/prometheus/alerts.yml"), &want))
	require.NotEmpty(t, want.Groups)
	got := one[*monitoringv1.PrometheusRule](t, list).Spec
	a, err := json.Marshal(want)
	require.NoError(t, err)
	b, err := json.Marshal(got)
	require.NoError(t, err)
	if string(a) != string(b) {
		return fmt.Errorf("the rules are not those of deploy/prometheus/alerts.yml: %s", b)
	}
	dashboards := one[*corev1.ConfigMap](t, list).Data
	if len(dashboards) != 1 || dashboards["pinwheel.json"] != string(read(t, "deploy/grafana/pinwheel.json")) {
		return fmt.Errorf("the dashboard is not that of deploy/grafana/pinwheel.json")
	}
	return nil
}
