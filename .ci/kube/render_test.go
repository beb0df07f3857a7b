// Package kube tests deploy/helm and deploy/kustomize with the libraries of helm and kustomize, and with the types that
// the API server and the operators decode objects into.
package kube_test

import (
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	kedav1alpha1 "github.com/kedacore/keda/v2/apis/keda/v1alpha1"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/yaml"
)

const (
	root      = "../.."
	chartDir  = root + "/deploy/helm/pinwheel"
	namespace = "events"
)

func TestMain(m *testing.M) {
	slog.SetLogLoggerLevel(slog.LevelWarn) // helm tells each time that it follows the links of the chart
	os.Exit(m.Run())
}

// object is an object as the API server takes it.
type object struct {
	metav1.Object
	kind string
}

// name is KIND/NAME.
func (o object) name() string { return o.kind + "/" + o.GetName() }

// objects are the objects of one installation.
type objects []object

// decode decodes all objects of a text. It refuses fields that the types do not have, and fields that come twice.
func decode(text string) (objects, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		appsv1.AddToScheme, corev1.AddToScheme, policyv1.AddToScheme, networkingv1.AddToScheme, autoscalingv2.AddToScheme,
		monitoringv1.AddToScheme, kedav1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	var list objects
	for one := range strings.SplitSeq("\n"+text, "\n---\n") {
		var content map[string]any
		if err := yaml.UnmarshalStrict([]byte(one), &content); err != nil {
			return nil, err
		}
		if len(content) == 0 {
			continue
		}
		o, kind, err := decoder.Decode([]byte(one), nil, nil)
		if err != nil {
			return nil, err
		}
		list = append(list, object{o.(metav1.Object), kind.Kind})
	}
	return list, nil
}

// find returns the objects of a type.
func find[T any](list objects) []T {
	var found []T
	for _, o := range list {
		if v, ok := o.Object.(T); ok {
			found = append(found, v)
		}
	}
	return found
}

// one returns the object of a type, of which there must be one.
func one[T any](t *testing.T, list objects) T {
	t.Helper()
	found := find[T](list)
	require.Len(t, found, 1)
	return found[0]
}

// render renders the chart as helm install does, without what needs a cluster.
func render(release string, values map[string]any) (string, error) {
	return renderIn(namespace, release, values)
}

func renderIn(namespace, release string, values map[string]any) (string, error) {
	chart, err := loader.Load(chartDir)
	if err != nil {
		return "", err
	}
	if err := chartutil.ProcessDependencies(chart, values); err != nil {
		return "", err
	}
	options := common.ReleaseOptions{Name: release, Namespace: namespace, Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(chart, values, options, common.DefaultCapabilities)
	if err != nil {
		return "", err
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, ".yaml") {
			text.WriteString(files[name] + "\n---\n")
		}
	}
	return text.String(), nil
}

// values parses YAML.
func values(t *testing.T, text []byte) map[string]any {
	t.Helper()
	v := map[string]any{}
	require.NoError(t, yaml.UnmarshalStrict(text, &v))
	return v
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	require.NoError(t, err)
	return text
}

// install renders the chart with the values of testdata/NAME.yaml, and decodes it.
func install(t *testing.T, set string) objects {
	t.Helper()
	text, err := render("prod", values(t, read(t, ".ci/kube/testdata/"+set+".yaml")))
	require.NoError(t, err)
	list, err := decode(text)
	require.NoError(t, err, "%s", text)
	return list
}
