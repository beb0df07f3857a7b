package main_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/pinwheel-run/pinwheel/internal/process/config"
)

const (
	chartValues = "deploy/helm/pinwheel/values.yaml"
	chartSchema = "deploy/helm/pinwheel/values.schema.json"
)

// valueSchema is a part of the schema of the chart's values.
type valueSchema struct {
	Description          string
	Properties           map[string]valueSchema
	AdditionalProperties any
}

// flow returns a value in one line of YAML.
func flow(t *testing.T, n *yaml.Node) string {
	t.Helper()
	one := *n
	one.HeadComment, one.LineComment, one.FootComment, one.Style = "", "", "", one.Style|yaml.FlowStyle
	for _, inner := range one.Content {
		inner.HeadComment, inner.LineComment, inner.FootComment = "", "", ""
	}
	text, err := yaml.Marshal(&one)
	require.NoError(t, err)
	return strings.Join(strings.Fields(string(text)), " ")
}

// valueRows returns the rows of the table of values. Each value has a description, and each description a value.
func valueRows(t *testing.T, path string, n *yaml.Node, s valueSchema) (body string) {
	t.Helper()
	told := map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		name, value := n.Content[i].Value, n.Content[i+1]
		inner, ok := s.Properties[name]
		require.True(t, ok, "%s: there is no %s%s", chartSchema, path, name)
		told[name] = true
		if inner.Description == "" {
			require.Equal(t, false, inner.AdditionalProperties, "%s: %s%s takes what is misspelt", chartSchema, path, name)
			body += valueRows(t, path+name+".", value, inner)
			continue
		}
		shown := "`" + flow(t, value) + "`"
		if len(shown) > 80 {
			shown = "see values.yaml"
		}
		body += fmt.Sprintf("| `%s%s` | %s | %s |\n", path, name, shown, inner.Description)
	}
	for name := range s.Properties {
		require.True(t, told[name] || name == "global", "%s: there is no %s%s", chartValues, path, name)
	}
	return body
}

// Each value of the chart has a default and a meaning, and the page has all of them.
func TestReferenceValues(t *testing.T) {
	var s valueSchema
	require.NoError(t, json.Unmarshal([]byte(read(t, chartSchema)), &s))
	var n yaml.Node
	require.NoError(t, yaml.Unmarshal([]byte(read(t, chartValues)), &n))
	require.Equal(t, false, s.AdditionalProperties)
	body := valueRows(t, "", n.Content[0], s)
	require.Greater(t, strings.Count(body, "\n"), 50)
	generated(t, "docs/guides/kubernetes.md", "values", "\n| value | default | meaning |\n|---|---|---|\n"+body+"\n")
}

// The chart takes each variable of the configuration by one value only: by one of its own, or under env. The rest has
// no use in a pod.
func TestReferenceVariablesOfTheChart(t *testing.T) {
	deployment := read(t, "deploy/helm/pinwheel/templates/deployment.yaml")
	own := regexp.MustCompile(`PINWHEEL_[A-Z_]+[A-Z]`).FindAllString(deployment, -1)
	require.Greater(t, len(own), 20)
	useless := []string{"PINWHEEL_NATS_CONTEXT", "PINWHEEL_NATS_PORT", "PINWHEEL_DATA", "PINWHEEL_OWNER"}
	var want []string
	for _, v := range config.Variables() {
		if !slices.Contains(own, v.Name) && !slices.Contains(own, cmp.Or(v.File, v.Name)) &&
			!slices.Contains(useless, v.Name) {
			want = append(want, v.Name)
		}
	}
	slices.Sort(want)
	var list strings.Builder
	for i, name := range want {
		list.WriteString(map[bool]string{true: "\n", false: ",\n"}[i == 0])
		fmt.Fprintf(&list, "        %q: {\n          \"type\": \"string\"\n        }", name)
	}
	text := read(t, chartSchema)
	_, rest, ok := strings.Cut(text, `"env": {`)
	require.True(t, ok)
	_, rest, ok = strings.Cut(rest, `"properties": {`)
	require.True(t, ok)
	found, _, ok := strings.Cut(rest, "\n      }")
	require.True(t, ok)
	if os.Getenv("UPDATE_DOCS") != "" && found != list.String() {
		require.NoError(t, os.WriteFile(chartSchema, []byte(strings.Replace(text, found, list.String(), 1)), 0o644))
		return
	}
	require.Equal(t, list.String(), found, "%s: UPDATE_DOCS=1 go test -run TestReference . writes it", chartSchema)
}
