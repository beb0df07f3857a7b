package bundle_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy/bundle"
)

func TestDirectoriesOfFilesThatAreRefused(t *testing.T) {
	t.Parallel()
	for manifest, want := range map[string]string{
		`{"assets": {"directory": "../x"}}`:                      `pinwheel.json:1:13: assets.directory is "../x": it leads out of the directory`,
		`{"assets": {"directory": "/etc"}}`:                      `assets.directory is "/etc": it is a path from the directory of the manifest`,
		`{"assets": {"directory": "out"}}`:                       `assets.directory is "out": a link on it leads out of the directory of the manifest`,
		`{"assets": {"directory": "gone"}}`:                      `assets.directory is "gone": there is no such directory`,
		`{"assets": {"directory": "index.js"}}`:                  `assets.directory is "index.js": it is no directory`,
		`{"assets": {}}`:                                         `pinwheel.json:1:2: assets.directory is missing`,
		`{"assets": {"directory": "dist"}}`:                      `dist/_redirects:2:1: status 404: it is one of 200, 301`,
		`{"assets": {"directory": ".", "html": "x"}}`:            `pinwheel.json:1:31: assets.html is "x": it is one of auto-trailing-slash`,
		`{"assets": {"directory": ".", "workerFirst": ["api"]}}`: `assets.workerFirst[0] is "api": it begins with /`,
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "index.js"), handler)
		write(t, filepath.Join(dir, "dist/_redirects"), "/a /b\n/c /d 404\n")
		require.NoError(t, os.Symlink("/etc", filepath.Join(dir, "out")))
		write(t, filepath.Join(dir, "pinwheel.json"), manifest)
		_, err := bundle.Build(t.Context(), dir)
		require.ErrorContains(t, err, want, manifest)
	}

	dir := t.TempDir()
	write(t, filepath.Join(dir, "dist/a.txt"), "a")
	write(t, filepath.Join(dir, "pinwheel.json"), `{"assets": {"directory": "dist", "binding": "A"}}`)
	_, err := bundle.Build(t.Context(), dir)
	require.ErrorContains(t, err, `pinwheel.json:1:34: assets.binding is "A": there is no code that could read the files; main names it`)
}
