package manifest_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/jsonc"

	"github.com/pinwheel-run/pinwheel/deploy/manifest"
)

// fuzz checks that a format gives either a valid specification or an error with a place.
func fuzz(f *testing.F, format manifest.Format, seeds ...string) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > manifest.MaxBytes {
			return
		}
		m, err := checked(format, string(text))
		if err != nil {
			require.Nil(t, m)
			require.ErrorAs(t, err, new(*manifest.SourceError))
			require.Less(t, len(err.Error()), 4000)
			return
		}
		if m == nil {
			require.Equal(t, manifest.Package, format)
			return
		}
		require.NoError(t, manifest.Validate(m.Spec))
		require.NotEmpty(t, m.Fault("main", "x").Diagnostics)
		if format == manifest.JSON {
			require.True(t, json.Valid(jsonc.ToJSON(text)), "what is accepted is JSON")
			require.NoError(t, valid(t, jsonc.ToJSON(text)), "the schema allows it")
		}
	})
}

func FuzzJSON(f *testing.F) {
	fuzz(f, manifest.JSON, `{"vars":{"a":"b"},"limits":{"cpuMs":"1s"}} x`, "{\"vars\": {\"\\ud800\": \"\xff\"}, \"limits\": []}",
		`{"name":"x",/* c */"mode":"pinned","retries":{"factor":1.5,"jitter":0},"schedules":[{"cron":"@daily"},],}`,
		`{"onDeadLetter":{"worker":"u"},"queues":{"Q":"w"},"idempotent":true,"$schema":"x","vars":{"A":"${HOST}$${"}}`)
}

func FuzzYAML(f *testing.F) {
	fuzz(f, manifest.YAML, "name: x\nvars: &v {A: b}\nlimits:\n  cpuMs: 1s\n", "a: &a [*a]", "? a\n: b\n", "- x\n--- y\n", bomb(),
		"%YAML 1.1\n---\n!!map {a: 1}")
}

func FuzzBuntime(f *testing.F) {
	fuzz(f, manifest.Buntime, "entrypoint: index.ts\ntimeout: 30s\nttl: 5m\nidleTimeout: 2m\nmaxRequests: 500\nautoInstall: true\n", "ttl: 0\nenv: {A: b}")
}

func FuzzWranglerJSON(f *testing.F) {
	fuzz(f, manifest.WranglerJSON, `{"name":"x","main":"a.ts","triggers":{"crons":["* * * * *"]},"queues":{"producers":[{"queue":"a","binding":"B"}]},"limits":{"cpu_ms":5}}`)
}

func FuzzWranglerTOML(f *testing.F) {
	fuzz(f, manifest.WranglerTOML, "name='x'\n[vars]\nA='b'\n[[queues.producers]]\nqueue='a'\nbinding='B'\n[limits]\ncpu_ms=5\n", "a.b.c=1\n[a.d]\n[[x.y]]\nz={k=[1,2,{}]}",
		"a=1979-05-27T07:32:00Z\nb=0xff\nc=1e3\nd=inf")
}

func FuzzPackage(f *testing.F) {
	fuzz(f, manifest.Package, `{"pinwheel":{"main":"a.ts"}}`, `{"name":"x"}`, `[1]`)
}
