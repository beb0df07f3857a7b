package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
)

const kvWorker = `export default { async fetch(request, env) {
	await env.KV.put("by:worker", "théy", { metadata: { n: 1 } });
	return Response.json(await env.KV.getWithMetadata("by:person"));
} }`

// People and workers use the same keys. What people change is recorded, without the values.
func TestKV(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	r := f.Pinwheel("kv", "ls", "acme/space")
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Err, "acme: the owner has no KV data yet")
	require.Equal(t, 1, f.Pinwheel("kv", "get", "acme/space", "k").Code)
	require.Equal(t, 1, f.Pinwheel("kv", "rm", "acme/space", "k").Code)

	r = f.Pinwheel("kv", "put", "acme/space", "by:person", "--value", "secret words", "--metadata", `{"from":"cli"}`)
	require.Equal(t, "set by:person of acme/space, 12 bytes\n", r.Out, r.Err)
	file := filepath.Join(t.TempDir(), "w.js")
	require.NoError(t, os.WriteFile(file, []byte(kvWorker), 0o600))
	require.NoError(t, os.WriteFile(strings.TrimSuffix(file, ".js")+".pinwheel.json", []byte(`{"kv":{"KV":"space"}}`),
		0o600))
	f.Deploy(t, file, "--owner", "acme")
	require.Contains(t, f.Pinwheel("send", "fetch", "acme/w").Out, `{"value":"secret words","metadata":{"from":"cli"},"cacheStatus":null}`)

	require.Equal(t, "théy", f.Pinwheel("kv", "get", "acme/space", "by:worker").Out)
	require.JSONEq(t, `{"key":"by:worker","value":"théy","metadata":{"n":1}}`, f.Pinwheel("kv", "get", "acme/space", "by:worker",
		"--json").Out)
	bytes := filepath.Join(t.TempDir(), "bytes")
	require.NoError(t, os.WriteFile(bytes, []byte{0, 255}, 0o600))
	r = f.Pinwheel("kv", "put", "acme/space", "a key\x1b", "--file", bytes, "--ttl", "1h", "--json")
	require.JSONEq(t, `{"owner":"acme","namespace":"space","key":"a key\u001b","bytes":2,"done":"set"}`, r.Out, r.Err)
	require.Equal(t, "\x00\xff", f.Pinwheel("kv", "get", "acme/space", "a key\x1b").Out)
	require.JSONEq(t, `{"key":"a key\u001b","base64":"AP8="}`, f.Pinwheel("kv", "get", "acme/space", "a key\x1b",
		"--json").Out)
	r = f.Pinwheel("kv", "ls", "acme/space")
	require.Regexp(t, `(?s)^KEY +EXPIRES +METADATA\n"a key\\x1b" +20.*\nby:person +- +\{"from":"cli"\}\nby:worker +- +\{"n":1\}\n$`, r.Out)
	lines := strings.Split(strings.TrimSpace(f.Pinwheel("kv", "ls", "acme/space", "--prefix", "by:", "--json").Out), "\n")
	require.Len(t, lines, 2)
	require.JSONEq(t, `{"key":"by:person","metadata":{"from":"cli"}}`, lines[0])

	r = f.Pinwheel("kv", "rm", "acme/space", "by:person")
	require.Equal(t, "removed by:person of acme/space, 12 bytes\n", r.Out, r.Err)
	r = f.Pinwheel("kv", "rm", "acme/space", "by:person")
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Err, `acme/space has no key "by:person"`)

	var actions []string
	for line := range strings.Lines(f.Pinwheel("audit", "acme", "--json").Out) {
		var rec struct {
			Action  string
			Request json.RawMessage
		}
		require.NoError(t, json.Unmarshal([]byte(line), &rec))
		require.NotContains(t, line, "secret words")
		if strings.HasPrefix(rec.Action, "kv.") {
			actions = append(actions, rec.Action+" "+string(rec.Request))
		}
	}
	require.Equal(t, []string{
		`kv.put {"key":"by:person","namespace":"space","owner":"acme","with":["metadata","value"]}`,
		`kv.put {"key":"a key\u001b","namespace":"space","owner":"acme","with":["ttl","value"]}`,
		`kv.rm {"key":"by:person","namespace":"space","owner":"acme"}`,
	}, actions)
}

func TestKVWithBadArguments(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	long := filepath.Join(t.TempDir(), "long")
	require.NoError(t, os.WriteFile(long, make([]byte, 512<<10+1), 0o600))
	for _, c := range []struct {
		code int
		want string
		args []string
	}{
		{2, "write OWNER/NAMESPACE", []string{"ls", "acme"}},
		{2, "owner", []string{"ls", "a.b/space"}},
		{2, "namespace", []string{"get", "acme/sp*ce", "k"}},
		{2, "namespace", []string{"get", "acme/a/b", "k"}},
		{2, "whole number of seconds", []string{"put", "acme/space", "k", "--value", "v", "--ttl", "500ms"}},
		{2, "no JSON", []string{"put", "acme/space", "k", "--value", "v", "--metadata", "{"}},
		{2, "value", []string{"put", "acme/space", "k", "--value", "v", "--file", long}},
		{1, "more than 524288 bytes", []string{"put", "acme/space", "k", "--file", long}},
		{2, "is not allowed as a key name", []string{"put", "acme/space", "..", "--value", "v"}},
		{2, "key length limit of 512", []string{"put", "acme/space", strings.Repeat("k", 513), "--value", "v"}},
	} {
		r := f.Pinwheel(append([]string{"kv"}, c.args...)...)
		require.Equal(t, c.code, r.Code, "%.80q %s", c.args, r.Err)
		require.Contains(t, r.Err, c.want)
	}
}

// An owner's data is removed when its operator says so twice, and that of others stays.
func TestOwnersRmData(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	for _, owner := range []string{"acme", "beta"} {
		require.Zero(t, f.Pinwheel("kv", "put", owner+"/space", "k", "--value", "v").Code)
	}
	r := f.Pinwheel("owners", "rm", "acme")
	require.Regexp(t, `acme has what the fleet's configuration says\nits data stays \(--data removes it\): \d+ bytes in KV_PINWHEEL_KV_acme\n`, r.Out)
	r = f.Pinwheel("owners", "rm", "acme", "--data")
	require.Equal(t, 2, r.Code)
	require.Contains(t, r.Err, "confirm it with --yes")
	require.Equal(t, "v", f.Pinwheel("kv", "get", "acme/space", "k").Out)
	r = f.Pinwheel("owners", "rm", "acme", "--data", "--yes")
	require.Zero(t, r.Code, r.Err)
	require.Contains(t, r.Out, "removed its data: ")
	require.Contains(t, f.Pinwheel("kv", "get", "acme/space", "k").Err, "no KV data")
	require.Equal(t, "v", f.Pinwheel("kv", "get", "beta/space", "k").Out)
	require.NotContains(t, f.Pinwheel("owners", "rm", "acme").Out, "data")
}
