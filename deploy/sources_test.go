package deploy_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/deploy/bundle"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

type kinds []events.Kind

func (k kinds) Check(context.Context, *workers.Worker) (workers.Handlers, error) {
	return workers.Handlers{Kinds: k}, nil
}

// A source that the owner is not granted, or that the servers refuse, is refused at its place in the manifest.
func TestSourcesAreRefusedAtTheirPlace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	source := filepath.Join(dir, "hello.js")
	require.NoError(t, os.WriteFile(source, []byte("export default { task() {} };\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "hello.pinwheel.json"), []byte(`{
  "sources": [
    {"stream": "ORDERS", "subjects": ["orders.>"], "start": {"sequence": 7}},
    {"kv": "FLAGS", "start": "all"}
  ]
}
`), 0o600))
	cfg := deploy.Config{}
	asked := 0
	var answer error
	cfg.CheckSources = func(_ context.Context, w *workers.Worker) error {
		asked++
		require.Len(t, w.Sources, 2)
		require.EqualValues(t, 7, w.Sources[0].Start.Sequence)
		require.Equal(t, workers.StartAll, w.Sources[1].Start.From)
		return answer
	}
	store := newStore(t, cfg)
	try := func(has kinds, granted ...string) error {
		_, err := store.Deploy(t.Context(), deploy.Request{Owner: "acme", Path: source,
			Policy: workers.Policy{Consume: granted}}, has)
		return err
	}
	var at *bundle.SourceError
	err := try(kinds{events.Task})
	require.True(t, errors.As(err, &at), "%v", err)
	require.ErrorContains(t, err, "hello.pinwheel.json:3:5: sources[0] is stream ORDERS, which the owner is not granted: it is granted nothing")
	err = try(kinds{events.Task}, "stream:ORDERS:orders.>", "kv:OTHER")
	require.ErrorContains(t, err, "hello.pinwheel.json:4:5: sources[1] is kv FLAGS, which the owner is not granted: it is granted stream:ORDERS:orders.> kv:OTHER")
	require.Zero(t, asked, "the servers are asked only about what is granted")

	all := []string{"stream:ORDERS", "kv:*"}
	answer = workers.NewSourceFault(1, "kv FLAGS: it is not there")
	err = try(kinds{events.Task}, all...)
	require.True(t, errors.As(err, &at), "%v", err)
	require.ErrorContains(t, err, "hello.pinwheel.json:4:5: sources[1] is kv FLAGS: it is not there")
	answer = errors.New("no servers")
	require.ErrorContains(t, try(kinds{events.Task}, all...), "sources are not checked: no servers")
	answer = nil
	require.ErrorContains(t, try(kinds{events.Fetch}, all...), "the manifest has sources, and the module has no task or queue handler")
	require.NoError(t, try(kinds{events.Task}, all...))

	store = newStore(t, deploy.Config{})
	require.ErrorContains(t, try(kinds{events.Task}, all...), "a process of the fleet must deploy it")
}
