package manifest_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy/manifest"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
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
	"assets": {"directory": "public", "binding": "ASSETS"},
	"version_metadata": {"binding": "V"}, "limits": {"cpu_ms": 100, "subrequests": 20}, "kv_namespaces": [{"binding": "CACHE", "id": "0f2ac74b498b48028cb68387c421e279", "preview_id": "p"}, {"binding": "MORE"}], "r2_buckets": [{"binding": "FILES", "bucket_name": "my-files", "jurisdiction": "eu"}, {"binding": "REST"}], "services": [{"binding": "AUTH", "service": "auth"}, {"binding": "ADMIN", "service": "auth", "entrypoint": "Admin"}, {"binding": "MAIN", "service": "auth", "entrypoint": "default"}], "durable_objects": {"bindings": []}, "no_bundle": false,
}`)
	inTOML := parse(t, manifest.WranglerTOML, `"$schema" = "node_modules/wrangler/config-schema.json"
name = "shop"
main = "src/index.ts"
compatibility_date = "2026-07-01"
compatibility_flags = ["nodejs_compat"]
kv_namespaces = [{binding = "CACHE", id = "0f2ac74b498b48028cb68387c421e279", preview_id = "p"}, {binding = "MORE"}]
r2_buckets = [{binding = "FILES", bucket_name = "my-files", jurisdiction = "eu"}, {binding = "REST"}]
services = [{binding = "AUTH", service = "auth"}, {binding = "ADMIN", service = "auth", entrypoint = "Admin"}, {binding = "MAIN", service = "auth", entrypoint = "default"}]
durable_objects = {bindings = []}
no_bundle = false
version_metadata = {binding = "V"}
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
[assets]
directory = "public"
binding = "ASSETS"
[limits]
cpu_ms = 1_00
subrequests = 0x14
`)
	for _, m := range []*manifest.Manifest{inJSON, inTOML} {
		require.Equal(t, "shop src/index.ts", m.Name+" "+m.Main)
		require.Equal(t, workers.Spec{
			Bindings: workers.Bindings{VersionBinding: "V", Vars: map[string]string{"API": "https://${HOST}"},
				Queues: map[string]string{"JOBS": "jobs"}, KV: map[string]string{"CACHE": "0f2ac74b498b48028cb68387c421e279",
					"MORE": "MORE"}, Objects: map[string]string{"FILES": "my-files", "REST": "REST"}, Services: map[string]string{
					"AUTH": "auth", "ADMIN": "auth#Admin", "MAIN": "auth"}, JSON: map[string]string{
					"FLAGS": `{"beta":true,"limits":[1,2,0.5],"text":"\u003c${X}\u003e"}`, "MOST": "16",
				}},
			Limits:    workers.Limits{CPU: ms(100), Subrequests: 20},
			Assets:    &workers.Assets{Directory: "public", Binding: "ASSETS"},
			Schedules: []workers.Schedule{{Name: "1", Cron: "*/5 * * * *"}, {Name: "2", Cron: "0 9 * * MON-FRI"}},
		}, m.Spec)
		require.ElementsMatch(t, []string{
			"$schema", "compatibility_date", "observability", "kv_namespaces[0].preview_id",
			"r2_buckets[0].jurisdiction", "durable_objects", "no_bundle",
		}, m.Ignored, "nothing is dropped in silence")
	}
}

// What builds leave has every key, most of them with nothing in it.
func TestWranglersConfigurationOfABuild(t *testing.T) {
	t.Parallel()
	m := parse(t, manifest.WranglerJSON,
		`{"configPath": "/p/wrangler.jsonc", "userConfigPath": "/p/wrangler.jsonc", "topLevelName": "x", "definedEnvironments": ["live"], "targetEnvironment": "live",
		"jsx_factory": "React.createElement", "jsx_fragment": "React.Fragment", "rules": [{"type": "ESModule", "globs": ["**/*.js", "**/*.mjs"]}],
		"name": "x", "main": "index.js", "triggers": {}, "exports": {}, "k2": [], "python_modules": {"exclude": ["**/*.pyc"]}, "dev": {"ip": "localhost"}, "no_bundle": true}`)
	require.Equal(t, "x index.js", m.Name+" "+m.Main)
	require.Equal(t, workers.Spec{}, m.Spec)
	for text, want := range map[string]string{
		`{"jsx_factory": "h"}`:              `key "jsx_factory": it changes what wrangler builds`,
		`{"k2": [{"binding": "A"}]}`:        `key "k2": keep data behind fetch()`,
		`{"images": {"binding": "IMAGES"}}`: `key "images": call an image service with fetch(). Astro's adapter adds it unless its option imageService`,
	} {
		require.Contains(t, refused(t, manifest.WranglerJSON, text), want, text)
	}
}

// Rules say what an import of a file gives.
func TestRulesOfWrangler(t *testing.T) {
	t.Parallel()
	m := parse(t, manifest.WranglerJSON, `{"rules": [{"type": "Text", "globs": ["**/*.glsl", "*.tar.md"], "fallthrough": true},
		{"type": "Data", "globs": ["**/*.dat", "**/*.glsl"]}, {"type": "CompiledWasm", "globs": ["**/*.wasm?module"]}]}`)
	require.Equal(t, map[string]manifest.FileKind{".glsl": manifest.Text, ".tar.md": manifest.Text,
		".dat": manifest.Data}, m.Files)
	for text, want := range map[string]string{
		`{"rules": [{"type": "Python", "globs": ["**/*.py"]}]}`: `m:1:13: rules[0].type is "Python": it is one of Text, Data, ESModule, CommonJS, CompiledWasm`,
		`{"rules": [{"type": "Text", "globs": ["src/*.txt"]}]}`: `m:1:39: rules[0].globs[0] is "src/*.txt": it is **/*.EXTENSION`,
		`{"rules": [{"type": "Data", "globs": ["**/*.ts"]}]}`:   `m:1:39: rules[0].globs[0] is "**/*.ts": a file with that extension is code`,
	} {
		require.Contains(t, refused(t, manifest.WranglerJSON, text), want, text)
	}
}

// wrangler's vars are any JSON values.
func TestVarsOfWranglerAreJSON(t *testing.T) {
	t.Parallel()
	m := parse(t, manifest.WranglerJSON, `{"vars": {"NONE": null, "ON": true, "OFF": false, "HALF": 0.5, "EMPTY": "",
		"DEEP": {"a": [null, {"b": null}], "c": {}}}}`)
	require.NoError(t, m.Check(m.Spec))
	require.Equal(t, map[string]string{"EMPTY": ""}, m.Vars)
	require.Equal(t, map[string]string{"NONE": "null", "ON": "true", "OFF": "false", "HALF": "0.5",
		"DEEP": `{"a":[null,{"b":null}],"c":{}}`}, m.JSON)
}

func TestFaultsOfWranglersConfiguration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"r2_buckets": [{"binding": "F", "bucket_name": "a.b"}]}`:                `m:1:34: objects.F is no bucket`,
		`{"services": [{"binding": "A", "service": "a b"}]}`:                      `m:1:32: services.A is no service`,
		`{"services": [{"binding": "A", "service": "a", "entrypoint": "1x"}]}`:    `m:1:32: services.A is no service, which is WORKER or WORKER#ENTRYPOINT: an entrypoint is the name of an export`,
		`{"services": [{"binding": "A"}]}`:                                        `m:1:15: services[0] has no service`,
		`{"services": [{"service": "a"}]}`:                                        `m:1:15: services[0] has no binding`,
		`{"services": [{"binding": "A", "service": "a", "environment": "x"}]}`:    `m:1:48: key "services[0].environment": a worker has no environments here`,
		`{"services": [{"binding": "A", "service": "a", "props": {"x": 1}}]}`:     `m:1:48: key "services[0].props": ctx.props is empty here`,
		`{"r2_buckets": [{"bucket_name": "x"}]}`:                                  `m:1:17: r2_buckets[0] has no binding`,
		`{"r2_buckets": [{"binding": "A"}, {"binding": "A"}]}`:                    `m:1:35: r2_buckets[1].binding is "A": another bucket has that name`,
		`{"kv_namespaces": [{"binding": "CACHE", "id": "a.b"}]}`:                  `m:1:41: kv.CACHE is no namespace`,
		`{"kv_namespaces": [{"id": "x"}]}`:                                        `m:1:20: kv_namespaces[0] has no binding`,
		`{"kv_namespaces": [{"binding": "A"}, {"binding": "A"}]}`:                 `m:1:38: kv_namespaces[1].binding is "A": another namespace has that name`,
		`{"durable_objects": {"bindings": [{"name": "X"}]}}`:                      `m:1:2: key "durable_objects": there are no Durable Objects`,
		`{"assets": {"directory": "public", "binding": "A-B"}}`:                   `m:1:36: assets.binding A-B is no name in env`,
		`{"assets": {"directory": "public", "binding": "A"}, "vars": {"A": "x"}}`: `m:1:36: assets.binding A is a var too: a name in env is one thing`,
		`{"assets": {"directory": "public", "run_worker_first": ["!/x"]}}`:        `m:1:36: assets.workerFirst has only paths with a !`,
		`{"assets": {"directory": "public", "run_worker_first": ["/*", "!x"]}}`:   `m:1:63: assets.workerFirst[1] is "!x": it begins with /`,
		`{"assets": {"directory": "public", "not_found_handling": "x"}}`:          `m:1:36: assets.notFound is "x": it is one of none, 404-page, single-page-application`,
		`{"assets": {}}`: `m:1:2: assets.directory is missing`,
		"{\n\"queues\": {\n \"consumers\": [{\"queue\": \"x\"}]}}":                             `m:3:17: queues.consumers[0].queue is "x": the worker with the queue's name takes its messages, so the manifest needs a name`,
		`{"name": "shop", "queues": {"consumers": [{"queue": "x"}]}}`:                          `m:1:44: queues.consumers[0].queue is "x": the worker with the queue's name takes its messages, and this one is "shop"; name both the same`,
		`{"name": "x", "queues": {"consumers": [{"queue": "x"}, {"queue": "y"}]}}`:             `m:1:56: queues.consumers[1]: a worker takes the messages of one queue`,
		`{"name": "x", "queues": {"consumers": [{}]}}`:                                         `m:1:40: queues.consumers[0] has a queue`,
		`{"name": "x", "queues": {"consumers": [{"queue": "x", "type": "http_pull"}]}}`:        `m:1:55: queues.consumers[0].type is "http_pull": it is worker`,
		`{"name": "x", "queues": {"consumers": [{"queue": "x", "visibility_timeout_ms": 5}]}}`: `m:1:55: key "queues.consumers[0].visibility_timeout_ms": messages are not pulled over HTTP`,
		`{"name": "x", "queues": {"consumers": [{"queue": "x", "max_batch_size": 101}]}}`:      `m:1:55: batch.maxSize is 101: it is 1 to 100`,
		`{"name": "x", "queues": {"consumers": [{"queue": "x", "max_batch_timeout": 61}]}}`:    `m:1:55: queues.consumers[0].max_batch_timeout is 61: it is 0 to 60`,
		`{"name": "x", "queues": {"consumers": [{"queue": "x", "max_retries": 100}]}}`:         `m:1:55: queues.consumers[0].max_retries is 100: it is 0 to 99`,
		`{"name": "x", "queues": {"consumers": [{"queue": "x", "retry_delay": 3601}]}}`:        `m:1:55: queues.consumers[0].retry_delay is 3601: it is 0 to 3600`,
		`{"name": "x", "queues": {"consumers": [{"queue": "x", "dead_letter_queue": "a.b"}]}}`: `m:1:55: onDeadLetter.worker is no worker`,
		`{"name": "x", "queues": {"consumers": [{"queue": "x", "max_concurrency": -1}]}}`:      `m:1:55: concurrency is -1`,
		`{"queues": {"producers": [{"binding": "A"}]}}`:                                        `m:1:27: queues.producers[0] has a binding and a queue`,
		`{"queues": {"producers": [{"binding": "A", "queue": "a.b"}]}}`:                        `m:1:44: queues.A is no worker`,
		`{"queues": {"producers": [{"binding": "A", "queue": "a", "delivery_delay": 5}]}}`:     `m:1:58: key "queues.producers[0].delivery_delay": name the delay when sending`,
		`{"triggers": {"crons": ["0 9 * * 2"]}}`:                                               `m:1:25: triggers.crons[0] is "0 9 * * 2": days of the week count from 1 = Sunday at Cloudflare`,
		`{"triggers": {"crons": ["@daily"]}}`:                                                  `m:1:25: triggers.crons[0] is "@daily": it has 5 fields`,
		`{"triggers": {"crons": ["a b c d e"]}}`:                                               `m:1:25: schedules[0].cron is "a b c d e"`,
		`{"limits": {"cpu_ms": 400000}}`:                                                       `m:1:13: limits.cpuMs is 400000: it is 1 to 300000`,
		`{"limits": {"cpu_ms": 9223372036854775807}}`:                                          `m:1:13: limits.cpuMs is 31536000000: it is 1 to 300000`,
		`{"nane": "shop"}`:                       `m:1:2: unknown key "nane": the manifest may have assets, kv_namespaces, limits, main, name, queues, r2_buckets, route, routes, rules, secrets, services, triggers, vars, version_metadata`,
		`{"version_metadata": {"binding": "1"}}`: `m:1:23: version.1 is no name in env`,
		`{"name": "Not A Name"}`:                 `m:1:2: name is no worker's`,
	} {
		require.Contains(t, refused(t, manifest.WranglerJSON, text), want, text)
	}
	for text, want := range map[string]string{
		"name = \"shop\"\n\n[[d1_databases]]\nbinding = \"DB\"\n": `m:3:3: key "d1_databases"`,
		"name = \"shop\"\nname = \"other\"\n":                     `m:2:1: this is not TOML`,
		"[vars]\nA = inf\n":                                       `m:2:5: vars.A is inf: write a number as JSON has it`,
		"[vars]\nA = 2026-01-01\nB = 'x'\nB = 'y'":                `m:4:1: this is not TOML`,
		"[limits]\ncpu_ms = nan\n":                                `limits.cpu_ms is nan: it is a whole number`,
		"name = \n":                                               `m:1:`,
		"x = \"\xff\"":                                            `m:1:6: the byte 0xff is not UTF-8`,
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
	require.Equal(t, workers.Spec{
		Mode:     workers.Persistent,
		Bindings: workers.Bindings{Vars: map[string]string{"API": "https://${HOST}"}},
		Limits:   workers.Limits{Wall: ms(30_000)},
		Lifetime: workers.Lifetime{Idle: ms(120_000), TTL: ms(300_000), Requests: 500},
	}, m.Spec)
	require.Equal(t, []string{"lowMemory"}, m.Ignored)
	require.True(t, m.AutoInstall)
	require.Contains(t, m.Notes[0], "autoInstall: 'pinwheel deploy' installs the packages")

	m = parse(t, manifest.Buntime, "ttl: 0\nidleTimeout: 2m\nmaxRequests: 5\n")
	require.Equal(t, workers.Spec{Mode: workers.Oneshot}, m.Spec, "nothing outlives a request")
	require.Equal(t, []string{"idleTimeout", "maxRequests"}, m.Ignored)
	m = parse(t, manifest.Buntime, "ttl: 1h\n")
	require.Equal(t, workers.Lifetime{Idle: ms(60_000), TTL: ms(3600_000), Requests: 1000}, m.Lifetime,
		"Buntime's defaults")

	for text, want := range map[string]string{
		"publicRoutes: /health\n":         `m:1:15: publicRoutes is not an object in braces`,
		"entrypoint: site/home.html\n":    `m:1:1: entrypoint is "site/home.html": a page is index.html`,
		"base: shop\n":                    `m:1:1: http.base is "shop": it begins with /`,
		"timeout: 5\nmaxBodySize: 10tb\n": `m:2:14: maxBodySize is "10tb": it is a whole number of bytes, or a size like "10mb"`,
		"maxBodySize: 17gb\n":             `m:1:1: http.maxBody is 18253611008: it is 1 to 17179869184 bytes`,
		"timeout: 0\n":                    `m:1:1: timeout is 0: it is above 0`,
		"timeout: 1d\n":                   `m:1:1: limits.wallMs is 86400000: it is 1 to 900000`,
		"ttl: 90d\n":                      `m:1:1: lifetime.ttlMs is 7776000000`,
		"timeout: 1.5\n":                  `m:1:10: timeout is 1.5: it is a whole number of seconds, or a duration`,
		"timeout: -1\n":                   `m:1:10: timeout is -1`,
		"autoInstall: maybe\n":            `m:1:14: autoInstall is "maybe": it is true or false`,
		"env:\n  9A: x\n":                 `m:2:3: vars.9A is no name in env`,
		"entry: index.ts\n":               `m:1:1: unknown key "entry": the manifest may have autoInstall, base, entrypoint, env, idleTimeout, maxBodySize, maxRequests, plain, publicRoutes, secrets, timeout, ttl`,
	} {
		require.Contains(t, refused(t, manifest.Buntime, text), want, text)
	}
}

// Pages, bases, public paths and secrets of Buntime's manifests.
func TestBuntimesPagesAndRoutes(t *testing.T) {
	t.Parallel()
	m := parse(t, manifest.Buntime, "entrypoint: ./dist/index.html\nbase: /panel\nautoInstall: false\nlowMemory: true\n")
	require.Equal(t, &workers.Assets{Directory: "dist", NotFound: workers.NotFoundSPA}, m.Assets)
	require.Equal(t, []any{"", "./dist/index.html", "/panel"}, []any{m.Main, m.Page, m.HTTP.Base})
	require.Empty(t, m.Notes)
	for _, base := range []string{"base: /\n", "maxBodySize: 1mb\n"} {
		require.Empty(t, parse(t, manifest.Buntime, base).HTTP.Base)
	}

	m = parse(t, manifest.Buntime, "publicRoutes:\n  GET:\n    - /health\n  POST: [/hooks/:id]\n")
	require.Nil(t, m.WithPublic(m.Spec).HTTP)
	require.Contains(t, m.Notes[0], "publicRoutes makes no difference here: without a token")
	m = parse(t, manifest.Buntime, "publicRoutes: [/health]\nsecrets: [KEY]\nenv: {DB_HOST: h}\nplain: [DB_HOST]\n")
	withToken := m.Spec
	withToken.HTTP = &workers.HTTP{Auth: "KEY"}
	require.NoError(t, m.Check(m.WithPublic(withToken)))
	require.Equal(t, workers.PublicPaths{workers.AnyMethod: {"/health"}}, m.WithPublic(withToken).HTTP.Public)
	require.Nil(t, withToken.HTTP.Public)
	require.Empty(t, m.Notes)
}

// A consumer's settings mean what they mean at Cloudflare.
func TestWranglersConsumer(t *testing.T) {
	t.Parallel()
	m := parse(t, manifest.WranglerJSON,
		`{"name": "jobs", "queues": {"consumers": [{"queue": "jobs", "type": "worker", "max_batch_size": 50, "max_batch_timeout": 0,
		"max_retries": 0, "dead_letter_queue": "failed-jobs", "max_concurrency": 3, "retry_delay": 60}]}}`)
	require.Equal(t, workers.Spec{
		Batch:       &workers.Batch{MaxSize: 50, MaxWait: new(workers.Millis(0))},
		Retries:     workers.Retries{MaxAttempts: 1, Initial: ms(60_000), Max: ms(60_000), Factor: 1, Jitter: new(0.0)},
		OnDead:      &events.DeadHook{Worker: "failed-jobs"},
		Concurrency: 3,
	}, m.Spec)
	require.NoError(t, m.Check(m.Spec))
	m = parse(t, manifest.WranglerTOML, `
name = "jobs"
[[queues.consumers]]
queue = "jobs"
`)
	require.Equal(t, workers.Spec{Batch: &workers.Batch{}, Retries: workers.Retries{MaxAttempts: 4}}, m.Spec)
	b := m.Batch.OrDefault()
	require.Equal(t, []any{10, ms(5000)}, []any{b.MaxSize, *b.MaxWait})
}

func TestWranglerCompatibilityOfSockets(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]workers.BinaryType{
		`{}`:                                   "",
		`{"compatibility_date": "2026-03-16"}`: workers.BinaryBuffer,
		`{"compatibility_date": "2022-01-01"}`: workers.BinaryBuffer,
		`{"compatibility_date": "2026-03-17"}`: "",
		`{"compatibility_date": "2025-01-01", "compatibility_flags": ["nodejs_compat", "websocket_standard_binary_type"]}`: "",
		`{"compatibility_flags": ["no_websocket_standard_binary_type"], "compatibility_date": "2026-07-01"}`:               workers.BinaryBuffer,
	} {
		m, err := manifest.Parse(manifest.WranglerJSON, "m", []byte(text), nil)
		require.NoError(t, err, text)
		require.Equal(t, want, m.BinaryType, text)
		require.Equal(t, want == "" && text != "{}", slices.Contains(m.Ignored, "compatibility_date"), text)
	}
	for text, want := range map[string]bool{
		`{}`:                                         false,
		`{"compatibility_date": "2026-08-03"}`:       false,
		`{"compatibility_date": "2026-08-04"}`:       true,
		`{"compatibility_flags": ["nodejs_compat"]}`: true,
		`{"compatibility_date": "2024-01-01", "compatibility_flags": ["nodejs_compat_v2"]}`:                  true,
		`{"compatibility_date": "2026-09-01", "compatibility_flags": ["no_nodejs_compat"]}`:                  false,
		`{"compatibility_date": "2026-09-01", "compatibility_flags": ["no_nodejs_compat", "nodejs_compat"]}`: false,
	} {
		m, err := manifest.Parse(manifest.WranglerJSON, "m", []byte(text), nil)
		require.NoError(t, err, text)
		require.Equal(t, want, m.Node, text)
	}
	for _, text := range []string{`{"compatibility_date": "soon"}`, `{"compatibility_date": 2026}`,
		`{"compatibility_date": "2026-13-01"}`} {
		_, err := manifest.Parse(manifest.WranglerJSON, "m", []byte(text), nil)
		require.ErrorContains(t, err, `it is a date like "2026-03-17"`, text)
	}
	m, err := manifest.Parse(manifest.JSON, "m", []byte(`{"binaryType": "text"}`), nil)
	require.NoError(t, err)
	require.ErrorContains(t, m.Check(m.Spec), `binaryType is "text": it is "blob" or "arraybuffer"`)
}
