package deploy_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/deploy/bundle"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

var deployedAt = regexp.MustCompile(`"deployedAt":"[^"]*"`)

// TestFormat1NeverChanges compares the stored records, and the hashes in them, with those of testdata/format1, byte for
// byte. Processes of earlier and of later versions read the same bucket, and a deploy of the same code and manifest
// must find the same hash.
//
// These files are never written again. A record that has to differ gets another format.
func TestFormat1NeverChanges(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	s := open(t, nc, deploy.Config{})
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	kv, err := js.KeyValue(t.Context(), deploy.DefaultBucket)
	require.NoError(t, err)
	handlers := checker(func(*workers.Worker) ([]events.Kind, error) { return events.Kinds[:], nil })

	for _, name := range []string{"plain", "some", "rich"} {
		manifest := filepath.Join("testdata", "format1", name+bundle.ManifestSuffix)
		text, err := os.ReadFile(manifest)
		require.NoError(t, err)
		m, err := bundle.ParseManifest(manifest, text)
		require.NoError(t, err)
		b := &bundle.Bundle{
			Code: "export default { fetch() {}, task() { return \"<&>\" }, scheduled() {} };\n", File: name + ".js",
			SourceMap: []byte(`{"version":3,"sources":["` + name + `.ts"]}`),
			Spec:      m,
		}
		deployed, err := s.Deploy(t.Context(), deploy.Request{Owner: "acme", Name: name, Bundle: b}, handlers)
		require.NoError(t, err)
		entry, err := kv.Get(t.Context(), "acme."+name)
		require.NoError(t, err)
		record := deployedAt.ReplaceAllString(string(entry.Value()), `"deployedAt":"2026-01-02T03:04:05Z"`)

		file := filepath.Join("testdata", "format1", name+".record.json")
		want, err := os.ReadFile(file)
		if os.IsNotExist(err) {
			t.Errorf("%s is written now", file)
			require.NoError(t, os.WriteFile(file, []byte(record), 0o644))
			continue
		}
		require.NoError(t, err)
		require.Equal(t, string(want), record, name)

		// What an earlier process stored is read as what was deployed.
		_, err = kv.Put(t.Context(), "acme."+name, want)
		require.NoError(t, err)
		read, err := s.Get(t.Context(), "acme", name, "")
		require.NoError(t, err)
		w := deployed.Worker
		w.DeployedAt = read.DeployedAt
		if len(w.Schedules) == 0 {
			w.Schedules = nil // a record does not tell an empty list from none
		}
		require.Equal(t, w, read)
	}
}
