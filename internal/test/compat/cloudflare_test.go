package compat_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy/bundle"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
)

const cloudflarePage = "../../../docs/reference/cloudflare.md"

// cloudflareNames is testdata/cloudflare/names.json: what docs/reference/cloudflare.md says of each name.
type cloudflareNames struct {
	Sections []struct {
		Name string
		Rows []cloudflareRow
	}
	Imports  []string // that the deploy refuses
	Keys     []string // of wrangler's configuration that the deploy refuses
	Handlers []string // that nothing calls
}

type cloudflareRow struct {
	API   string
	Probe string          // an expression of JavaScript
	Here  json.RawMessage // what it is in Pinwheel
	There json.RawMessage // what it is in Cloudflare's runtime, if that is something else
	Is    string          // differs or no; "" = yes
	Note  string
}

func readCloudflareNames(t *testing.T) (names cloudflareNames, rows []cloudflareRow, program string) {
	t.Helper()
	text, err := os.ReadFile("testdata/cloudflare/names.json")
	require.NoError(t, err)
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&names))
	var probes []string
	for _, s := range names.Sections {
		for _, r := range s.Rows {
			rows = append(rows, r)
			probes = append(probes, "async function () { return "+r.Probe+"; }")
			require.Contains(t, []string{"", "differs", "no"}, r.Is, r.API)
			require.True(t, r.Is != "" || r.There == nil, "%s is not the same there: say differs or no", r.API)
		}
	}
	template, err := os.ReadFile("testdata/cloudflare/probe.js")
	require.NoError(t, err)
	return names, rows, strings.Replace(string(template), "= PROBES", "= [\n"+strings.Join(probes, ",\n")+"]", 1)
}

func compareAnswers(t *testing.T, rows []cloudflareRow, text string, want func(cloudflareRow) json.RawMessage) {
	t.Helper()
	var answers []json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(text), &answers), text)
	require.Len(t, answers, len(rows))
	var wrong []string
	for i, r := range rows {
		var a, b any
		require.NoError(t, json.Unmarshal(want(r), &a), r.API)
		require.NoError(t, json.Unmarshal(answers[i], &b), r.API)
		if !reflect.DeepEqual(a, b) {
			wrong = append(wrong, fmt.Sprintf("%s: %s is %s, not %s", r.API, r.Probe, answers[i], want(r)))
		}
	}
	require.Empty(t, wrong)
}

// TestCloudflarePage asks a worker for each name that docs/reference/cloudflare.md lists, and holds the page to its
// answers. UPDATE_DOCS=1 writes the tables of the page from testdata/cloudflare/names.json.
func TestCloudflarePage(t *testing.T) {
	names, rows, program := readCloudflareNames(t)
	dir := t.TempDir()
	source := filepath.Join(dir, "names.js")
	require.NoError(t, os.WriteFile(source, []byte(program), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "names"+bundle.ManifestSuffix),
		[]byte(`{"node": true, "limits": {"cpuMs": 10000}, "kv": {"KV": "names"}, "objects": {"R2": "names"}}`), 0o600))
	f := fleettest.Start(t, func(c *config.Config) { c.HTTPAddr, c.HTTPPaths = "127.0.0.1:0", "npm" })
	f.Deploy(t, source, "--owner", "npm", "--var", "GREETING=hi", "--queue", "JOBS=jobs")
	_, answers := get(t, "http://"+f.HTTP+"/names/")
	compareAnswers(t, rows, answers, func(r cloudflareRow) json.RawMessage { return r.Here })
	length, text := get(t, "http://"+f.HTTP+"/names/length")
	require.Equal(t, "5 hello", fmt.Sprint(length, " ", text), "a FixedLengthStream as body")

	page, err := os.ReadFile(cloudflarePage)
	require.NoError(t, err)
	have := string(page)
	for _, s := range names.Sections {
		table := "\n| API | here | |\n|---|---|---|\n"
		for _, r := range s.Rows {
			is := r.Is
			if is == "" {
				is = "yes"
			}
			table += fmt.Sprintf("| %s | %s | %s |\n", r.API, is, r.Note)
		}
		have = withSection(t, have, s.Name, table+"\n")
	}
	have = withSection(t, have, "imports", refusedImports(t, names.Imports))
	have = withSection(t, have, "keys", refusedKeys(t, names.Keys))
	have = withSection(t, have, "handlers", uncalledHandlers(t, f, names.Handlers))
	if os.Getenv("UPDATE_DOCS") != "" {
		require.NoError(t, os.WriteFile(cloudflarePage, []byte(have), 0o644))
		return
	}
	require.Equal(t, have, string(page), "docs/reference/cloudflare.md is out of date: UPDATE_DOCS=1 go test -run TestCloudflarePage ./internal/test/compat writes it")
}

// get returns the Content-Length and the body of a response.
func get(t *testing.T, url string) (length int64, body string) {
	t.Helper()
	r, err := http.Get(url)
	require.NoError(t, err)
	defer func() { _ = r.Body.Close() }()
	text, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, r.StatusCode, "%s", text)
	return r.ContentLength, string(text)
}

// withSection puts text between the marker with that name and the next end.
func withSection(t *testing.T, page, name, text string) string {
	t.Helper()
	before, after, ok := strings.Cut(page, "<!-- "+name+":")
	require.True(t, ok, "the page has no marker %s", name)
	comment, after, ok := strings.Cut(after, "-->\n")
	require.True(t, ok, name)
	_, after, ok = strings.Cut(after, "<!-- end -->")
	require.True(t, ok, "the marker %s has no end", name)
	return before + "<!-- " + name + ":" + comment + "-->\n" + text + "<!-- end -->" + after
}

func refusedImports(t *testing.T, imports []string) string {
	t.Helper()
	table := "\n| import | instead |\n|---|---|\n"
	for _, text := range imports {
		source := filepath.Join(t.TempDir(), "refused.js")
		name := regexp.MustCompile(`^import \{? ?(\w+)`).FindStringSubmatch(text)
		require.NotNil(t, name, text)
		require.NoError(t, os.WriteFile(source, []byte(text+"; export default { task: () => "+name[1]+" };"), 0o600))
		_, err := bundle.Build(t.Context(), source)
		var refused *bundle.SourceError
		require.ErrorAs(t, err, &refused, text)
		require.Len(t, refused.Diagnostics, 1)
		d := refused.Diagnostics[0]
		require.Positive(t, d.Line*d.Column, text)
		require.Len(t, d.Notes, 1, text)
		table += fmt.Sprintf("| `%s` | %s |\n", text, d.Notes[0])
	}
	return table + "\n"
}

func refusedKeys(t *testing.T, keys []string) string {
	t.Helper()
	table := "\n| key | what the deploy says |\n|---|---|\n"
	for _, key := range keys {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "index.js"), []byte("export default { task() {} };"), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "wrangler.json"),
			[]byte(`{"name": "x", "main": "index.js", "`+key+`": {"a": 1}}`), 0o600))
		_, err := bundle.Build(t.Context(), dir)
		var refused *bundle.SourceError
		require.ErrorAs(t, err, &refused, key)
		require.Len(t, refused.Diagnostics, 1)
		_, why, ok := strings.Cut(refused.Diagnostics[0].Text, `key "`+key+`": `)
		require.True(t, ok, "%s: %s", key, refused.Diagnostics[0].Text)
		table += fmt.Sprintf("| `%s` | %s |\n", key, why)
	}
	return table + "\n"
}

// uncalledHandlers reads what the deploy says of handlers that nothing calls.
func uncalledHandlers(t *testing.T, f *fleettest.Fleet, names []string) string {
	t.Helper()
	source := filepath.Join(t.TempDir(), "handlers.js")
	require.NoError(t,
		os.WriteFile(source, []byte("export default class { task() {} "+strings.Join(names, "() {} ")+"() {} }"), 0o600))
	said := f.Pinwheel("deploy", source, "--owner", "npm").Err
	table := "\n| handler | what the deploy says |\n|---|---|\n"
	for _, name := range names {
		m := regexp.MustCompile(`nothing calls ` + name + `\(\), which the default export has: (.+)`).FindStringSubmatch(said)
		require.NotNil(t, m, "%s: %s", name, said)
		table += fmt.Sprintf("| `%s` | %s |\n", name, m[1])
	}
	return table + "\n"
}

// Cloudflare's runtime answers what testdata/cloudflare/names.json says.
func TestCloudflareNamesInMiniflare(t *testing.T) {
	t.Parallel()
	dir := packages(t)
	_, rows, program := readCloudflareNames(t)
	source := filepath.Join(dir, "names.js")
	require.NoError(t, os.WriteFile(source, []byte(program), 0o600))
	answers := runMiniflare(t, dir, source,
		`{"compatibilityFlags": ["nodejs_compat"], "bindings": {"GREETING": "hi"}, "queueProducers": {"JOBS": "jobs"}, "kvNamespaces": ["KV"], "r2Buckets": ["R2"]}`)
	compareAnswers(t, rows, answers[0], func(r cloudflareRow) json.RawMessage {
		if r.There != nil {
			return r.There
		}
		return r.Here
	})
}
