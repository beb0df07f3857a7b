package manifest_test

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy/manifest"
)

var compiled = sync.OnceValues(func() (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(manifest.Schema()))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(manifest.SchemaID, doc); err != nil {
		return nil, err
	}
	return c.Compile(manifest.SchemaID)
})

// valid checks a manifest against the schema.
func valid(t *testing.T, text []byte) error {
	t.Helper()
	s, err := compiled()
	require.NoError(t, err)
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	return s.Validate(value)
}

func TestSchemaAllowsTheExamples(t *testing.T) {
	t.Parallel()
	found, err := filepath.Glob("../../examples/*.pinwheel.json")
	require.NoError(t, err)
	require.NotEmpty(t, found)
	for _, path := range found {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, valid(t, text), path)
	}
}

// The schema and the parser refuse the same. What depends on two fields, or on names, only the parser knows.
func TestSchemaRefusesWhatTheParserRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"var": {}}`, `{"limits": 5}`, `{"limits": {"cpuMs": 0}}`, `{"limits": {"cpuMs": "1 s"}}`,
		`{"limits": {"cpuMs": 1.5}}`, `{"limits": {"cpu": 1}}`,
		`{"mode": "turbo"}`, `{"mode": null}`, `{"vars": {"A": 1}}`, `{"jsonVars": {}}`, `{"schedules": [{}]}`,
		`{"schedules": [{"cron": "@daily", "overlap": "no"}]}`,
		`{"schedules": [{"cron": "@daily", "misfire": "no"}]}`, `{"onDeadLetter": {"queue": "x"}}`, `{"retries": {"fetch": 1}}`,
		`{"kv": {"A": 1}}`, `[]`,
		`{"batch": 10}`, `{"batch": {"maxSize": 0}}`, `{"batch": {"maxWaitMs": -1}}`, `{"batch": {"maxWaitMs": "soon"}}`,
		`{"batch": {"size": 1}}`,
	} {
		require.Error(t, valid(t, []byte(text)), text)
		refused(t, manifest.JSON, text)
	}
	for _, text := range []string{
		`{}`, `{"$schema": "x", "name": "shop", "main": "a.ts"}`, `{"retries": {"jitter": 0, "maxMs": "1h"}}`,
		`{"lifetime": {"idleMs": "1w"}, "mode": "persistent"}`,
		`{"batch": {}}`, `{"batch": {"maxSize": 100, "maxWaitMs": 0}}`, `{"batch": {"maxWaitMs": "5s"}}`,
		`{"batch": {"maxWaitMs": "0s"}}`,
	} {
		require.NoError(t, valid(t, []byte(text)), text)
		parse(t, manifest.JSON, text)
	}
}
