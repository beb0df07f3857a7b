package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
)

const objectsWorker = `export default { async fetch(request, env) {
	await env.FILES.put("by/worker", "théy", { httpMetadata: { contentType: "text/plain" }, customMetadata: { n: "1" } });
	const { size, httpMetadata, customMetadata } = await env.FILES.head("by/person");
	return Response.json({ size, httpMetadata, customMetadata });
} }`

// People and workers use the same objects. What people change is recorded, without the data.
func TestObjects(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	for _, args := range [][]string{{"ls", "acme/files"}, {"get", "acme/files", "k"}, {"rm", "acme/files", "k"}} {
		r := f.Pinwheel(append([]string{"objects"}, args...)...)
		require.Equal(t, 1, r.Code)
		require.Contains(t, r.Err, "acme: the owner has no objects yet")
	}
	dir := t.TempDir()
	data := bytes.Repeat([]byte("secret\x00\xff words"), 700_000) // read in several parts
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	require.NoError(t, os.WriteFile(from, data, 0o600))
	r := f.Pinwheel("objects", "put", "acme/files", "by/person", "--file", from, "--content-type", "image/png",
		"--metadata", "from=cli=x", "--metadata", "n=")
	require.Equal(t, "stored by/person of acme/files, 9800000 bytes\n", r.Out, r.Err)

	file := filepath.Join(dir, "w.js")
	require.NoError(t, os.WriteFile(file, []byte(objectsWorker), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "w.pinwheel.json"), []byte(`{"objects":{"FILES":"files"}}`), 0o600))
	f.Deploy(t, file, "--owner", "acme")
	require.Contains(t, f.Pinwheel("send", "fetch", "acme/w").Out, `{"size":9800000,"httpMetadata":{"contentType":"image/png"},"customMetadata":{"from":"cli=x","n":""}}`)

	require.Equal(t, "théy", f.Pinwheel("objects", "get", "acme/files", "by/worker").Out)
	require.NoError(t, os.WriteFile(to, []byte("before"), 0o600))
	r = f.Pinwheel("objects", "get", "acme/files", "by/person", "--file", to)
	require.Zero(t, r.Code, r.Err)
	require.Empty(t, r.Out)
	got, err := os.ReadFile(to)
	require.NoError(t, err)
	require.True(t, bytes.Equal(data, got))
	require.NoFileExists(t, to+".part")

	r = f.Pinwheel("objects", "put", "acme/files", "a key\x1b", "--file", os.DevNull, "--json")
	require.JSONEq(t, `{"owner":"acme","bucket":"files","key":"a key\u001b","bytes":0,"done":"stored"}`, r.Out, r.Err)
	r = f.Pinwheel("objects", "get", "acme/files", "a key\x1b")
	require.Zero(t, r.Code, r.Err)
	require.Empty(t, r.Out)
	r = f.Pinwheel("objects", "ls", "acme/files")
	require.Regexp(t, `(?s)^KEY +BYTES +UPLOADED +TYPE\n"a key\\x1b" +0 +20.* -\nby/person +9800000 +20.* image/png\nby/worker +5 +20.* text/plain\n$`, r.Out)
	var shown map[string]any
	require.NoError(t, json.Unmarshal([]byte(f.Pinwheel("objects", "ls", "acme/files", "--prefix", "by/w", "--json").Out),
		&shown))
	require.NotEmpty(t, shown["uploaded"])
	delete(shown, "uploaded")
	require.Equal(t, map[string]any{
		"key": "by/worker", "size": 5.0, "etag": "dfeacd7f61892cf3f4457a78885482c8", "contentType": "text/plain",
		"customMetadata": map[string]any{"n": "1"},
	}, shown)
	require.Contains(t, f.Pinwheel("objects", "get", "acme/files", "by/worker", "--json").Out,
		`{"key":"by/worker","size":5,"etag":"`)
	require.Equal(t, "KEY  BYTES  UPLOADED  TYPE\n", f.Pinwheel("objects", "ls", "acme/other").Out)

	r = f.Pinwheel("objects", "rm", "acme/files", "by/person")
	require.Equal(t, "removed by/person of acme/files, 9800000 bytes\n", r.Out, r.Err)
	for _, args := range [][]string{{"rm"}, {"get", "--file", to}} {
		r = f.Pinwheel(append([]string{"objects", args[0], "acme/files", "by/person"}, args[1:]...)...)
		require.Equal(t, 1, r.Code)
		require.Contains(t, r.Err, `acme/files has no object "by/person"`)
	}
	require.FileExists(t, to, "what was there stays")

	var actions []string
	for line := range strings.Lines(f.Pinwheel("audit", "acme", "--json").Out) {
		var rec struct {
			Action  string
			Request json.RawMessage
		}
		require.NoError(t, json.Unmarshal([]byte(line), &rec))
		if strings.HasPrefix(rec.Action, "objects.") {
			actions = append(actions, rec.Action+" "+string(rec.Request))
		}
	}
	require.Equal(t, []string{
		`objects.put {"bucket":"files","key":"by/person","owner":"acme","with":["body","contentType","customMetadata"]}`,
		`objects.put {"bucket":"files","key":"a key\u001b","owner":"acme","with":["body"]}`,
		`objects.rm {"bucket":"files","key":"by/person","owner":"acme"}`,
	}, actions)
}

func TestObjectsWithBadArguments(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	dir := t.TempDir()
	long, short, there := filepath.Join(dir, "long"), filepath.Join(dir, "short"), filepath.Join(dir, "there")
	require.NoError(t, os.WriteFile(long, make([]byte, 25<<20+1), 0o600))
	require.NoError(t, os.WriteFile(short, []byte("x"), 0o600))
	require.NoError(t, os.WriteFile(there+".part", nil, 0o600))
	require.Zero(t, f.Pinwheel("objects", "put", "acme/files", "k", "--file", short).Code)
	for _, c := range []struct {
		code int
		want string
		args []string
	}{
		{2, "write OWNER/BUCKET", []string{"ls", "acme"}},
		{2, "owner", []string{"ls", "a.b/files"}},
		{2, "bucket", []string{"get", "acme/fi*es", "k"}},
		{2, "bucket", []string{"get", "acme/a/b", "k"}},
		{2, "it is a media type", []string{"put", "acme/files", "k", "--file", short, "--content-type", "image"}},
		{2, "write it as NAME=VALUE", []string{"put", "acme/files", "k", "--file", short, "--metadata", "x"}},
		{1, "more than 26214400 bytes", []string{"put", "acme/files", "k", "--file", long}},
		{1, "no such file", []string{"put", "acme/files", "k", "--file", short + "er"}},
		{2, "object name is not valid", []string{"put", "acme/files", strings.Repeat("k", 1025), "--file", short}},
		{2, "exceed the maximum allowed metadata size", []string{"put", "acme/files", "k", "--file", short, "--metadata",
			"n=" + strings.Repeat("v", 8192)}},
		{1, "there.part", []string{"get", "acme/files", "k", "--file", there}},
		{2, "one of them is enough", []string{"get", "acme/files", "k", "--file", there, "--json"}},
	} {
		r := f.Pinwheel(append([]string{"objects"}, c.args...)...)
		require.Equal(t, c.code, r.Code, "%.80q %s", c.args, r.Err)
		require.Contains(t, r.Err, c.want)
	}
	require.Equal(t, "x", f.Pinwheel("objects", "get", "acme/files", "k").Out, "what was refused changed nothing")
}
