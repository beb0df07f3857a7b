package manifest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy/manifest"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

func ms(n int) workers.Millis { return workers.Millis(time.Duration(n) * time.Millisecond) }

// environment is what ${NAME} finds.
func environment(name string) (string, error) {
	value, ok := map[string]string{"HOST": "api.example", "EMPTY": "", "LONG": strings.Repeat("x", 100<<10)}[name]
	if !ok {
		return "", errors.New("there is none")
	}
	return value, nil
}

func checked(format manifest.Format, text string) (*manifest.Manifest, error) {
	m, err := manifest.Parse(format, "m", []byte(text), environment)
	if m == nil || err != nil {
		return nil, err
	}
	if err = m.Check(m.Spec); err != nil {
		return nil, err
	}
	return m, nil
}

func parse(t *testing.T, format manifest.Format, text string) *manifest.Manifest {
	t.Helper()
	m, err := checked(format, text)
	require.NoError(t, err)
	return m
}

// refused returns the first line of the error.
func refused(t *testing.T, format manifest.Format, text string) string {
	t.Helper()
	m, err := checked(format, text)
	require.Nil(t, m)
	var se *manifest.SourceError
	require.ErrorAs(t, err, &se, "%.200s", text)
	require.Less(t, len(err.Error()), 4000, "a message is short")
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

func TestABaseOfAllPathsIsNone(t *testing.T) {
	t.Parallel()
	m := parse(t, manifest.JSON, `{"http": {"base": "/"}}`)
	require.NoError(t, m.Check(m.Spec))
	require.Empty(t, m.HTTP.Base)
}

func TestNativeManifestInJSONAndYAML(t *testing.T) {
	t.Parallel()
	inJSON := parse(t, manifest.JSON, `// which worker
	{
	  "$schema": "./pinwheel.schema.json", /* for editors */
	  "name": "shop", "main": "src/index.ts", "mode": "persistent",
	  "vars": {"API": "https://${HOST}/v1", "E": "[${EMPTY}]", "LITERAL": "$${HOST} costs $5 {}", },
	  "queues": {"JOBS": "jobs"},
	  "limits": {"cpuMs": "2s", "wallMs": 5000}, "lifetime": {"idleMs": "1w", "ttlMs": "30d"},
	  "retries": {"initialMs": "500ms", "maxMs": "1h", "factor": 1.5, "jitter": 0},
	  "schedules": [{"cron": "@daily"}, {"cron": "0 9 * * 1-5", "name": "work"},],
	}`)
	inYAML := parse(t, manifest.YAML, `
$schema: ./pinwheel.schema.json
name: shop
main: src/index.ts
mode: persistent
vars: {API: "https://${HOST}/v1", E: "[${EMPTY}]", LITERAL: "$${HOST} costs $5 {}"}
queues: &q
  JOBS: jobs
limits: {cpuMs: 2s, wallMs: 5000}
lifetime: {idleMs: 1w, ttlMs: 30d}
retries: {initialMs: 500ms, maxMs: 1h, factor: 1.5, jitter: 0}
schedules:
  - cron: "@daily"
  - {cron: 0 9 * * 1-5, name: work}
`)
	for _, m := range []*manifest.Manifest{inJSON, inYAML} {
		require.Equal(t, "shop src/index.ts", m.Name+" "+m.Main)
		require.Empty(t, m.Ignored)
		require.Equal(t, workers.Spec{
			Mode: workers.Persistent,
			Bindings: workers.Bindings{
				Vars:   map[string]string{"API": "https://api.example/v1", "E": "[]", "LITERAL": "${HOST} costs $5 {}"},
				Queues: map[string]string{"JOBS": "jobs"},
			},
			Limits:    workers.Limits{CPU: ms(2000), Wall: ms(5000)},
			Lifetime:  workers.Lifetime{Idle: ms(7 * 24 * 3600 * 1000), TTL: ms(30 * 24 * 3600 * 1000)},
			Retries:   workers.Retries{Initial: ms(500), Max: ms(3600_000), Factor: 1.5, Jitter: new(0.0)},
			Schedules: []workers.Schedule{{Name: "1", Cron: "@daily"}, {Name: "work", Cron: "0 9 * * 1-5"}},
		}, m.Spec)
	}
}

func TestPackageJSONHasAManifestBelowItsKey(t *testing.T) {
	t.Parallel()
	m := parse(t, manifest.Package, `{"name": "@acme/shop", "main": "dist/x.js", "pinwheel": {"main": "src/index.ts"}}`)
	require.Equal(t, " src/index.ts", m.Name+" "+m.Main)
	for _, text := range []string{`{"name": "x"}`, `[]`, `"x"`} {
		m, err := manifest.Parse(manifest.Package, "package.json", []byte(text), nil)
		require.NoError(t, err)
		require.Nil(t, m)
	}
	require.Equal(t, `m:1:29: unknown key "mian": the manifest may have $schema, assets, batch, binaryType, concurrency, fileRoutes, http, idempotent, kv, lifetime, limits, main, mode, name, nats, node, objects, onDeadLetter, plain, queues, retries, schedules, secrets, services, sources, trace, vars, version`,
		refused(t, manifest.Package, `{"name": "x", "pinwheel":  {"mian": "src/index.ts"}}`))
}

func TestFaultsOfNativeManifests(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"name": "a.b"}`:                                 `m:1:2: name is no worker's: worker "a.b": a name is 1 to 64`,
		`{"kv": {"CACHE": "a.b"}}`:                        `m:1:9: kv.CACHE is no namespace`,
		`{"objects": {"FILES": "a/b"}}`:                   `m:1:14: objects.FILES is no bucket`,
		`{"services": {"A": "other/auth"}}`:               `m:1:15: services.A is no service, which is WORKER or WORKER#ENTRYPOINT: worker "other/auth"`,
		`{"services": {"A": "a#default"}}`:                `m:1:15: services.A is no service, which is WORKER or WORKER#ENTRYPOINT: an entrypoint is the name of an export`,
		`{"services": {"A": "a#"}}`:                       `m:1:15: services.A is no service`,
		`{"services": {"1A": "a"}}`:                       `m:1:15: services.1A is no name in env`,
		"{\n \"services\":\n  {\"A\": \"\"}}":             `m:3:4: services.A is no service`,
		`{"nats": {"BUS": {"publish": ["a", "b..c"]}}}`:   `m:1:36: nats.BUS.publish[1] is no subject: subject "b..c" has an empty token`,
		`{"nats": {"BUS": {"request": ["_INBOX.>"]}}}`:    `m:1:31: nats.BUS.request[0] is no subject: subject "_INBOX.>" begins with _`,
		`{"nats": {"BUS": {}}}`:                           `m:1:11: nats.BUS has neither publish nor request`,
		`{"nats": {"BUS": {"subscribe": []}}}`:            `m:1:19: unknown key "nats.BUS.subscribe"`,
		`{"version": "1V"}`:                               `m:1:2: version.1V is no name in env`,
		"// x\n{\"a\": 1,\n  \"http\": {}}":               `m:2:2: unknown key "a"`,
		`{"limits": {"cpuMs": "1 minute"}}`:               `m:1:22: limits.cpuMs is "1 minute": it is a whole number of milliseconds, or a duration like "30s"; its units are ms, s`,
		`{"limits": {"cpuMs": "0s"}}`:                     `m:1:22: limits.cpuMs is 0: it is above 0`,
		`{"limits": {"cpuMs": "2y"}}`:                     `m:1:22: limits.cpuMs is "2y": it is a whole number`,
		`{"limits": {"cpuMs": "999999999999999y"}}`:       `m:1:22: limits.cpuMs is "999999999999999y"`,
		`{"limits": {"cpuMs": "1h"}}`:                     `m:1:13: limits.cpuMs is 3600000: it is 1 to 300000`,
		`{"limits": {"heapMB": "64s"}}`:                   `m:1:23: limits.heapMB is "64s": it is a whole number`,
		`{"limits": {"heapMB": 99999999999999999999999}}`: `m:1:23: limits.heapMB is 99999999999999999999999: it is a whole number`,
		`{"retries": {"factor": 1e999}}`:                  `m:1:24: retries.factor is 1e999: it is a number`,
		`{"vars": {"FLAGS": null}}`:                       `m:1:20: vars.FLAGS is null: it is a string, an object or a list`,
		`{"vars": {"FLAGS": {"a": ["${HOST}"]}}}`:         `m:1:11: vars.FLAGS has ${, which is a variable of the environment only in vars that are strings`,
		`{"vars": {"FLAGS": [{"API_KEY": 1}]}}`:           `m:1:11: vars.FLAGS has the key "API_KEY", which looks like a secret`,
		`{"vars": {"STRIPE_X": {}}}`:                      `m:1:11: vars.STRIPE_X looks like a secret`,
		`{"jsonVars": {"A": "1"}}`:                        `m:1:2: unknown key "jsonVars"`,
		`{"vars": {"A": "${NOTHING}"}}`:                   `m:1:11: vars.A wants ${NOTHING}: there is none`,
		`{"vars": {"A": "${NO THING}"}}`:                  `m:1:11: vars.A has ${ without a name`,
		`{"vars": {"A": "${LONG}${LONG}"}}`:               `m:1:11: vars.A has more than 131072 bytes from the environment`,
		"{\"vars\": {\"A\": \"\xff\"}}":                   `m:1:17: the byte 0xff is not UTF-8`,
		"{\"vars\": \x00}":                                `m:1:10: the manifest has a zero byte`,
		`{"a": 1, "a": 2}`:                                `m:1:10: key "a" stands twice`,
		`{"kv": {"b": 1, "b": 2}}`:                        `m:1:17: key "b" stands twice`,
		`{"mode": ""}`:                                    `m:1:10: mode is empty: without it the default holds`,
		`{/* no end`:                                      `m:1:2: this is not JSON`,
	} {
		require.Contains(t, refused(t, manifest.JSON, text), want, text)
	}
	for text, want := range map[string]string{
		"":                                    `m:1:1: the manifest is empty`,
		"name: shop\n---\nname: other\n":      `another document follows`,
		"a: [":                                `m:1:1: this is not YAML`,
		"x:\n\t- y":                           `this is not YAML`,
		"limits:\n  cpuMs: 0x10\n":            `m:2:10: limits.cpuMs is 0x10: it is a whole number`,
		"limits:\n  cpuMs: 0o10\n":            `m:2:10: limits.cpuMs is 0o10: it is a whole number`,
		"limits:\n  cpuMs: .inf\n":            `m:2:10: limits.cpuMs is .inf: it is a whole number`,
		"limits:\n  heapMB: 1_000\n":          `m:2:11: limits.heapMB is 1_000: it is a whole number`,
		"vars:\n  PORT: 8080\n":               `m:2:9: vars.PORT is 8080: it is a string`,
		"vars:\n  ON: true\n":                 `m:2:7: vars.ON is true: it is a string`,
		"vars:\n  \"ü\": ~\n":                 `m:2:8: vars.ü is null: it is a string`,
		"name: shop\nname: other\n":           `m:2:1: key "name" stands twice`,
		"vars: &v {A: x}\nqueues: {<<: *v}\n": `m:2:10: the merge key <<: write the keys out`,
		"name: !!binary c2hvcA==\n":           `the tag !!binary`,
		"name: !shop x\n":                     `the tag !shop`,
		"? [a, b]\n: c\n":                     `m:1:3: a key is a string`,
		"a: &a [*a]\n":                        `levels deep`,
		"vars: *nothing\n":                    `this is not YAML: unknown anchor`,
		"schedules:\n- cron: '* * *'\n":       `m:2:3: schedules[0].cron is "* * *"`,
		"retries: {factor: 1, factor: 2}\n":   `m:1:22: key "factor" stands twice`,
	} {
		require.Contains(t, refused(t, manifest.YAML, text), want, text)
	}
}

// A bomb of aliases would be 10^9 values.
func bomb() string {
	var b strings.Builder
	b.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i < 9; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10), ","))
	}
	return b.String()
}

func TestHostileManifestsAreRefused(t *testing.T) {
	t.Parallel()
	const deep = 250_000 // brackets, or bytes
	for name, c := range map[string]struct {
		format manifest.Format
		text   string
		want   string
	}{
		"aliases of aliases": {manifest.YAML, bomb(), "more than 100000 values"},
		"deep JSON":          {manifest.JSON, `{"vars":` + strings.Repeat("[", deep), "more than 64 levels deep"},
		"deep JSON objects":  {manifest.JSON, strings.Repeat(`{"a":`, deep/3), "more than 64 levels deep"},
		"deep YAML":          {manifest.YAML, "vars: " + strings.Repeat("[", deep), "this is not YAML"},
		"deep YAML, closed": {manifest.YAML, "vars: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000),
			"more than 64 levels deep"},
		"deep TOML":         {manifest.WranglerTOML, "a = " + strings.Repeat("[", deep/2), "open brackets"},
		"deep TOML keys":    {manifest.WranglerTOML, strings.Repeat("a.", deep/4) + "a = 1", "levels deep"},
		"deep TOML tables":  {manifest.WranglerTOML, "[" + strings.Repeat("a.", deep/4) + "a]", "levels deep"},
		"brackets in texts": {manifest.WranglerTOML, "a = " + strings.Repeat(`["]",`, deep/10), "m:1:"},
		"long TOML":         {manifest.WranglerTOML, strings.Repeat("# x\n", deep/4), "in TOML at most 131072 are allowed"},
		"many values":       {manifest.JSON, `{"vars": [` + strings.Repeat("1,", 120_000) + "1]}", "more than 100000 values"},
		"many keys in TOML": {manifest.WranglerTOML, many("k%d=1\n", 14_000), `unknown key "k0"`},
		"many tables":       {manifest.WranglerTOML, strings.Repeat("[[a]]\n", 20_000), `unknown key "a"`},
		"many keys in YAML": {manifest.YAML, many("k%d: 1\n", 45_000), `unknown key "k0"`},
		"a long key":        {manifest.JSON, `{"` + strings.Repeat("k", 300_000) + `": 1}`, "a key has 300000 bytes"},
		"a long number":     {manifest.JSON, `{"limits": {"cpuMs": ` + strings.Repeat("9", 300_000) + `}}`, "… (300000 bytes)"},
		"a long text":       {manifest.JSON, `{"limits": {"cpuMs": "` + strings.Repeat("9", 300_000) + `"}}`, "… (300000 bytes)"},
		"only braces of ${": {manifest.JSON, `{"vars": {"A": "` + strings.Repeat("${", 50_000) + `"}}`, "without a name"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.LessOrEqual(t, len(c.text), manifest.MaxBytes)
			require.Contains(t, refused(t, c.format, c.text), c.want)
		})
	}
}

func many(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}
