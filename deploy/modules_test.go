package deploy_test

import (
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/deploy/assets"
	"github.com/pinwheel-run/pinwheel/deploy/bundle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/env/assetstore"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

const emptyWasm = "\x00asm\x01\x00\x00\x00"

// A module of WebAssembly is a file of its owner as long as a kept version names it. Versions share it. Without it, a
// version does not run.
func TestModulesOfVersions(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	s := open(t, natstest.Connect(t, srv), deploy.Config{})
	js, err := jetstream.New(natstest.Connect(t, srv))
	require.NoError(t, err)
	files := assetstore.New(js, assetstore.Config{})
	dir := t.TempDir()
	deployed := func(name, module, code string) deploy.Deployed {
		write(t, filepath.Join(dir, "m.wasm"), module)
		write(t, filepath.Join(dir, name+".js"), `import m from "./m.wasm"; export default { task: () => [m, `+code+`] }`)
		d, err := s.Deploy(t.Context(), deploy.Request{Owner: "acme", Path: filepath.Join(dir, name+".js")}, isFine)
		require.NoError(t, err)
		return d
	}
	one, two := emptyWasm+"\x00\x02\x01a", emptyWasm+"\x00\x02\x01b"
	has := func(module string) bool {
		missing, err := files.Missing(t.Context(), "acme", []string{assets.HashOf([]byte(module))})
		require.NoError(t, err)
		return len(missing) == 0
	}
	deployed("w", one, "1")
	deployed("w", one, "2")
	deployed("w", two, "3")
	deployed("other", one, "1")
	u, err := deploy.UsageOf(t.Context(), s, "acme")
	require.NoError(t, err)
	require.EqualValues(t, len(one)+len(two), u.Modules, "each counts once")
	first, err := s.Get(t.Context(), "acme", "w", "1")
	require.NoError(t, err)
	second, err := s.Get(t.Context(), "acme", "w", "2")
	require.NoError(t, err)
	require.Equal(t, one, string(first.Modules[0].Code))
	require.Same(t, first.Modules[0], second.Modules[0], "it is in memory once")

	require.NoError(t, s.Remove(t.Context(), "acme", "w"))
	require.True(t, has(one))
	require.False(t, has(two))
	require.NoError(t, s.Remove(t.Context(), "acme", "other"))
	require.False(t, has(one))

	// A deploy repairs a version whose module is gone.
	lost := deployed("w", two, "4")
	kv, err := js.KeyValue(t.Context(), assetstore.Bucket)
	require.NoError(t, err)
	require.NoError(t, kv.Purge(t.Context(), "acme."+assets.HashOf([]byte(two))))
	fresh := open(t, natstest.Connect(t, srv), deploy.Config{})
	_, err = fresh.Get(t.Context(), "acme", "w", lost.Worker.Version)
	require.ErrorContains(t, err, "a module is damaged")
	s = fresh
	again := deployed("w", two, "4")
	require.True(t, again.Stored)
	_, err = fresh.Get(t.Context(), "acme", "w", again.Worker.Version)
	require.NoError(t, err)
}

// Whoever made the bundle: its modules are what their names say, and V8 may compile them.
func TestModulesThatLie(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	s := open(t, natstest.Connect(t, srv), deploy.Config{})
	hash := assets.HashOf([]byte(emptyWasm))
	for want, m := range map[string]*workers.Module{
		"has the SHA-256 ":         {Hash: hash, Code: []byte("x")},
		"not a WebAssembly module": {Hash: assets.HashOf([]byte("x")), Code: []byte("x")},
	} {
		_, err := s.Deploy(t.Context(), deploy.Request{Owner: "acme", Name: "w", Bundle: &bundle.Bundle{
			Code: "export default {}", File: "w.js", Modules: []*workers.Module{m}}}, isFine)
		require.ErrorContains(t, err, want)
		var invalid *deploy.InvalidError
		require.ErrorAs(t, err, &invalid)
	}
	var missing *deploy.MissingFilesError
	_, err := deploy.ReadModules(t.Context(), s, "acme", []deploy.ModuleRef{{Hash: hash, Size: 8}})
	require.ErrorAs(t, err, &missing)
	_, err = deploy.AddFiles(t.Context(), s, "acme", []deploy.NewFile{{Hash: hash, Data: []byte(emptyWasm)}},
		workers.Policy{}, true)
	require.NoError(t, err)
	_, err = deploy.ReadModules(t.Context(), s, "other", []deploy.ModuleRef{{Hash: hash, Size: 8}})
	require.ErrorAs(t, err, &missing, "owners share none")
	_, err = deploy.ReadModules(t.Context(), s, "acme", []deploy.ModuleRef{{Hash: hash, Size: 9}})
	require.ErrorAs(t, err, &missing)
	modules, err := deploy.ReadModules(t.Context(), s, "acme", []deploy.ModuleRef{{Hash: hash, Size: 8}})
	require.NoError(t, err)
	require.Equal(t, emptyWasm, string(modules[0].Code))

	// The quota of code counts them.
	w := deploy.Request{Owner: "acme", Name: "w", Bounded: true, Policy: workers.Policy{CodeBytes: 20},
		Bundle: &bundle.Bundle{Code: "export default {}", File: "w.js", Modules: modules}}
	_, err = s.Deploy(t.Context(), w, isFine)
	require.ErrorContains(t, err, "this one has 25, and all may have 20 (codeBytes)")
}
