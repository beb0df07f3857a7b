package kube_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	kedav1alpha1 "github.com/kedacore/keda/v2/apis/keda/v1alpha1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

const kustomizeDir = "deploy/kustomize"

// made are the files of deploy/kustomize that are made of the chart, what is set for each, and the kinds that it has.
var made = []struct {
	file, change string
	kinds        []string
}{
	{"base/pinwheel.yaml", "{}",
		[]string{"ServiceAccount", "Service", "Deployment", "PodDisruptionBudget", "NetworkPolicy"}},
	{"components/keda/scaledobject.yaml", "{scaling: {kind: keda}}", []string{"ScaledObject"}},
	{"components/monitoring/servicemonitor.yaml", "{monitoring: {serviceMonitor: {enabled: true}}}", []string{"ServiceMonitor"}},
	{"components/monitoring/prometheusrule.yaml", "{monitoring: {rules: {enabled: true}}}", []string{"PrometheusRule"}},
}

// plain returns the objects of these kinds of a rendered chart as YAML, without what only helm sets.
func plain(t *testing.T, text string, kinds []string) string {
	t.Helper()
	type found struct {
		rank int
		text string
	}
	var list []found
	for one := range strings.SplitSeq("\n"+text, "\n---\n") {
		o := values(t, []byte(one))
		kind, _ := o["kind"].(string)
		rank := slices.Index(kinds, kind)
		if rank < 0 {
			continue
		}
		drop(o)
		delete(o["metadata"].(map[string]any), "namespace") // overlays set it
		written, err := yaml.Marshal(o)
		require.NoError(t, err)
		list = append(list, found{rank, string(written)})
	}
	slices.SortStableFunc(list, func(a, b found) int { return a.rank - b.rank })
	var b strings.Builder
	b.WriteString("# Made of deploy/helm/pinwheel with deploy/kustomize/values.yaml by `make kube UPDATE=1`. Change those.\n")
	for i, f := range list {
		if i > 0 {
			b.WriteString("---\n")
		}
		b.WriteString(f.text)
	}
	return b.String()
}

// drop removes labels that are true only of what helm installs.
func drop(v any) {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "helm.sh/chart")
		delete(v, "app.kubernetes.io/managed-by")
		delete(v, "app.kubernetes.io/version") // an overlay sets another tag
		for _, inner := range v {
			drop(inner)
		}
	case []any:
		for _, inner := range v {
			drop(inner)
		}
	}
}

// The files of deploy/kustomize are those of the chart.
func TestKustomizeIsMadeOfTheChart(t *testing.T) {
	for _, m := range made {
		all := values(t, read(t, kustomizeDir+"/values.yaml"))
		for key, value := range values(t, []byte(m.change)) {
			all[key] = value
		}
		text, err := renderIn("pinwheel", "pinwheel", all)
		require.NoError(t, err)
		want, file := plain(t, text, m.kinds), filepath.Join(root, kustomizeDir, m.file)
		if os.Getenv("UPDATE_DOCS") != "" {
			require.NoError(t, os.WriteFile(file, []byte(want), 0o644))
		}
		require.Equal(t, want, string(read(t, filepath.Join(kustomizeDir, m.file))), "make kube UPDATE=1 writes %s", file)
	}
}

// build builds a kustomization with these files beside those of the repository.
func build(t *testing.T, dir string, files map[string]string) objects {
	t.Helper()
	disk := filesys.MakeFsInMemory()
	for _, from := range []string{kustomizeDir, "deploy/grafana"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(root, from), func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			name, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			return disk.WriteFile("/"+name, read(t, name))
		}))
	}
	for name, text := range files {
		require.NoError(t, disk.WriteFile("/"+name, []byte(text)))
	}
	all, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(disk, "/"+dir)
	require.NoError(t, err)
	text, err := all.AsYaml()
	require.NoError(t, err)
	list, err := decode(string(text))
	require.NoError(t, err, "%s", text)
	return list
}

func TestKustomizeBase(t *testing.T) {
	list := build(t, kustomizeDir+"/base", nil)
	require.NoError(t, fits(list, ""))
	require.Len(t, list, 6)
	require.Contains(t, env(one[*appsv1.Deployment](t, list)), "PINWHEEL_CONTROL_TOKEN_FILE")
}

// The overlay that docs/guides/kubernetes.md shows builds, and does what the page says.
func TestKustomizeOverlayOfTheGuide(t *testing.T) {
	page := string(read(t, "docs/guides/kubernetes.md"))
	found := regexp.MustCompile("(?s)```yaml\n(# fleet/kustomization.yaml\n.*?)```").FindStringSubmatch(page)
	require.NotNil(t, found)
	list := build(t, "fleet", map[string]string{
		"fleet/kustomization.yaml": found[1],
		"fleet/fleet.env":          "nats-user=fleet\nnats-password=secret\ncontrol-token=0123456789abcdef\n",
		"fleet/age.key":            "AGE-SECRET-KEY-1\n",
	})
	require.NoError(t, fits(list, "pinwheel"))
	require.NoError(t, sameMonitoring(t, list))
	d, secret := one[*appsv1.Deployment](t, list), one[*corev1.Secret](t, list)
	require.Equal(t, "nats://nats.nats.svc:4222", env(d)["PINWHEEL_NATS_URL"])
	require.Equal(t, "_INBOX.{owner}.", env(d)["PINWHEEL_REPLY_PREFIXES"])
	require.Equal(t, "/etc/pinwheel/secrets/nats-password", env(d)["PINWHEEL_NATS_PASSWORD_FILE"])
	for _, v := range d.Spec.Template.Spec.Volumes {
		if v.Secret != nil {
			require.Equal(t, secret.Name, v.Secret.SecretName)
		}
	}
	require.Len(t, secret.Data, 4)
	require.True(t, strings.HasSuffix(d.Spec.Template.Spec.Containers[0].Image, ":1.2.3"), "images")
	require.Nil(t, d.Spec.Replicas, "KEDA sets it")
	scaled := one[*kedav1alpha1.ScaledObject](t, list)
	require.Equal(t, "http://pinwheel-admin.pinwheel.svc:8422/scale", scaled.Spec.Triggers[0].Metadata["url"])
	require.Equal(t, d.Name, scaled.Spec.ScaleTargetRef.Name)
}
