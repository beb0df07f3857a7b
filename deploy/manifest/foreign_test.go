package manifest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy/manifest"
	"github.com/pinwheel-run/pinwheel/events"
)

func TestWranglersConfiguration(t *testing.T) {
	t.Parallel()
	inJSON := parse(t, manifest.WranglerJSON, `/* of create-cloudflare */
{
	"$schema": "node_modules/wrangler/config-schema.json",
	"name": "shop", "main": "src/index.ts", "compatibility_date": "2026-07-01", "compatibility_flags": ["nodejs_compat"],
	"observability": {"enabled": true},
	"vars": {"API": "https://${HOST}", "MOST": 16, "FLAGS": {"beta": true, "limits": [1, 2, 0.5], "text": "<${X}>"}},
	"triggers": {"crons": ["*/5 * * * *", "0 9 * * MON-FRI"]},
	"queues": {"producers": [{"queue": "jobs", "binding": "JOBS"}], "consumers": []},
	"limits": {"cpu_ms": 100, "subrequests": 20}, "kv_namespaces": [], "durable_objects": {"bindings": []}, "no_bundle": false,
}`)
	inTOML := parse(t, manifest.WranglerTOML, `"$schema" = "node_modules/wrangler/config-schema.json"
name = "shop"
main = "src/index.ts"
compatibility_date = "2026-07-01"
compatibility_flags = ["nodejs_compat"]
kv_namespaces = []
durable_objects = {bindings = []}
no_bundle = false
vars.API = 'https://${HOST}'
vars.MOST = 0x10
vars.FLAGS = {beta = true, limits = [1, 0x2, 0.5], text = '<${X}>'}
[observability]
enabled = true
[triggers]
crons = ["*/5 * * * *", """0 9 * * MON-FRI"""]
[[queues.producers]]
queue = "jobs"
binding = "JOBS"
[queues]
consumers = []
[limits]
cpu_ms = 1_00
subrequests = 0x14
`)
	for _, m := range []*manifest.Manifest{inJSON, inTOML} {
		require.Equal(t, "shop src/index.ts", m.Name+" "+m.Main)
		require.Equal(t, events.Spec{
			Bindings: events.Bindings{Vars: map[string]string{"API": "https://${HOST}"}, Queues: map[string]string{"JOBS": "jobs"}, JSON: map[string]string{
				"FLAGS": `{"beta":true,"limits":[1,2,0.5],"text":"\u003c${X}\u003e"}`, "MOST": "16",
			}},
			Limits:    events.Limits{CPU: ms(100), Subrequests: 20},
			Schedules: []events.Schedule{{Name: "1", Cron: "*/5 * * * *"}, {Name: "2", Cron: "0 9 * * MON-FRI"}},
		}, m.Spec)
		require.ElementsMatch(t, []string{
			"$schema", "compatibility_date", "compatibility_flags", "observability", "queues.consumers", "kv_namespaces", "durable_objects", "no_bundle",
		}, m.Ignored, "nothing is dropped in silence")
	}
}

func TestFaultsOfWranglersConfiguration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"kv_namespaces": [{"binding": "CACHE", "id": "x"}]}`:             `m:1:2: key "kv_namespaces": there are no key-value stores yet`,
		`{"durable_objects": {"bindings": [{"name": "X"}]}}`:               `m:1:2: key "durable_objects": there are no Durable Objects`,
		`{"assets": {"directory": "public", "binding": "ASSETS"}}`:         `m:1:36: key "assets.binding": a handler cannot read the files yet`,
		`{"assets": {"directory": "public", "run_worker_first": ["!/x"]}}`: `m:1:57: assets.workerFirst[0] is "!/x": it begins with /`,
		`{"assets": {"directory": "public", "not_found_handling": "x"}}`:   `m:1:36: assets.notFound is "x": it is one of none, 404-page, single-page-application`,
		`{"assets": {}}`: `m:1:2: assets.directory is missing`,
		"{\n\"queues\": {\n \"consumers\": [{\"queue\": \"x\"}]}}":                         `m:3:2: key "queues.consumers": there are no batches yet`,
		`{"queues": {"producers": [{"binding": "A"}]}}`:                                    `m:1:27: queues.producers[0] has a binding and a queue`,
		`{"queues": {"producers": [{"binding": "A", "queue": "a.b"}]}}`:                    `m:1:44: queues.A is no worker`,
		`{"queues": {"producers": [{"binding": "A", "queue": "a", "delivery_delay": 5}]}}`: `m:1:58: key "queues.producers[0].delivery_delay": name the delay when sending`,
		`{"triggers": {"crons": ["0 9 * * 2"]}}`:                                           `m:1:25: triggers.crons[0] is "0 9 * * 2": days of the week count from 1 = Sunday at Cloudflare`,
		`{"triggers": {"crons": ["@daily"]}}`:                                              `m:1:25: triggers.crons[0] is "@daily": it has 5 fields`,
		`{"triggers": {"crons": ["a b c d e"]}}`:                                           `m:1:25: schedules[0].cron is "a b c d e"`,
		`{"limits": {"cpu_ms": 400000}}`:                                                   `m:1:13: limits.cpuMs is 400000: it is 1 to 300000`,
		`{"limits": {"cpu_ms": 9223372036854775807}}`:                                      `m:1:13: limits.cpuMs is 31536000000: it is 1 to 300000`,
		`{"nane": "shop"}`:          `m:1:2: unknown key "nane": the manifest may have assets, limits, main, name, queues, route, routes, secrets, triggers, vars`,
		`{"vars": {"FLAGS": null}}`: `m:1:20: vars.FLAGS is null: it is a string, an object or a list`,
		`{"name": "Not A Name"}`:    `m:1:2: name is no worker's`,
	} {
		require.Contains(t, refused(t, manifest.WranglerJSON, text), want, text)
	}
	for text, want := range map[string]string{
		"name = \"shop\"\n\n[[kv_namespaces]]\nbinding = \"CACHE\"\n": `m:3:3: key "kv_namespaces"`,
		"name = \"shop\"\nname = \"other\"\n":                         `m:2:1: this is not TOML`,
		"[vars]\nA = inf\n":                                           `m:2:5: vars.A is inf: write a number as JSON has it`,
		"[vars]\nA = 2026-01-01\nB = 'x'\nB = 'y'":                    `m:4:1: this is not TOML`,
		"[limits]\ncpu_ms = nan\n":                                    `limits.cpu_ms is nan: it is a whole number`,
		"name = \n":                                                   `m:1:`,
		"x = \"\xff\"":                                                `m:1:6: the byte 0xff is not UTF-8`,
	} {
		require.Contains(t, refused(t, manifest.WranglerTOML, text), want, text)
	}
}

func TestBuntimesManifest(t *testing.T) {
	t.Parallel()
	m := parse(t, manifest.Buntime, `# apps/todos-kv/v1/manifest.yaml
entrypoint: index.ts
timeout: 30s
ttl: 5m
idleTimeout: 120
maxRequests: 500
autoInstall: true
lowMemory: false
env:
  API: "https://${HOST}"
`)
	require.Equal(t, "index.ts", m.Main)
	require.Equal(t, events.Spec{
		Mode:     events.Persistent,
		Bindings: events.Bindings{Vars: map[string]string{"API": "https://${HOST}"}},
		Limits:   events.Limits{Wall: ms(30_000)},
		Lifetime: events.Lifetime{Idle: ms(120_000), TTL: ms(300_000), Requests: 500},
	}, m.Spec)
	require.Equal(t, []string{"autoInstall", "lowMemory"}, m.Ignored)

	m = parse(t, manifest.Buntime, "ttl: 0\nidleTimeout: 2m\nmaxRequests: 5\n")
	require.Equal(t, events.Spec{Mode: events.Oneshot}, m.Spec, "nothing outlives a request")
	require.Equal(t, []string{"idleTimeout", "maxRequests"}, m.Ignored)
	m = parse(t, manifest.Buntime, "ttl: 1h\n")
	require.Equal(t, events.Lifetime{Idle: ms(60_000), TTL: ms(3600_000), Requests: 1000}, m.Lifetime, "Buntime's defaults")

	for text, want := range map[string]string{
		"publicRoutes: [/health]\n":       `m:1:1: key "publicRoutes": every path is public here`,
		"timeout: 5\nmaxBodySize: 10tb\n": `m:2:14: maxBodySize is "10tb": it is a whole number of bytes, or a size like "10mb"`,
		"maxBodySize: 17gb\n":             `m:1:1: http.maxBody is 18253611008: it is 1 to 17179869184 bytes`,
		"timeout: 0\n":                    `m:1:1: timeout is 0: it is above 0`,
		"timeout: 1d\n":                   `m:1:1: limits.wallMs is 86400000: it is 1 to 900000`,
		"ttl: 90d\n":                      `m:1:1: lifetime.ttlMs is 7776000000`,
		"timeout: 1.5\n":                  `m:1:10: timeout is 1.5: it is a whole number of seconds, or a duration`,
		"timeout: -1\n":                   `m:1:10: timeout is -1`,
		"autoInstall: maybe\n":            `m:1:14: autoInstall is "maybe": it is true or false`,
		"env:\n  9A: x\n":                 `m:2:3: vars.9A is no name in env`,
		"entry: index.ts\n":               `m:1:1: unknown key "entry": the manifest may have entrypoint, env, idleTimeout, maxBodySize, maxRequests, timeout, ttl`,
	} {
		require.Contains(t, refused(t, manifest.Buntime, text), want, text)
	}
}
