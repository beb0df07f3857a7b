package bundle_test

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy/bundle"
)

// patience is how long tests wait for a fact on a busy machine.
const patience = time.Minute

func watchFiles(t *testing.T, files, dirs []string) (*bundle.FileWatcher, <-chan []string) {
	t.Helper()
	w, err := bundle.OpenFileWatcher()
	require.NoError(t, err)
	require.NoError(t, w.Set(files, dirs))
	changes := make(chan []string, 100)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- w.Run(ctx, func(paths []string) { changes <- paths }) }()
	t.Cleanup(func() {
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
		require.NoError(t, w.Close())
	})
	return w, changes
}

func expect(t *testing.T, changes <-chan []string, want ...string) {
	t.Helper()
	select {
	case got := <-changes:
		require.Equal(t, want, got)
	case <-time.After(patience):
		t.Fatalf("no change of %v was told", want)
	}
}

func TestSavesAreToldOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, b := write(t, dir+"/a.js", "1"), write(t, dir+"/b.js", "1")
	w, changes := watchFiles(t, []string{a, dir + "/a.pinwheel.json"}, nil)

	for i := range 5 {
		write(t, a, strconv.Itoa(i))
	}
	expect(t, changes, a)

	// As editors do it: write another file, and rename it over the old one.
	for range 2 {
		write(t, dir+"/.a.js.swp", "2")
		require.NoError(t, os.Rename(dir+"/.a.js.swp", a))
		expect(t, changes, a)
	}
	// Or: rename the old one away, and write a new one.
	require.NoError(t, os.Rename(a, a+"~"))
	write(t, a, "3")
	expect(t, changes, a)

	write(t, dir+"/a.pinwheel.json", "{}")
	expect(t, changes, dir+"/a.pinwheel.json")

	write(t, b, "not watched")
	require.NoError(t, w.Set([]string{b}, nil))
	write(t, a, "no longer watched")
	write(t, b, "watched")
	expect(t, changes, b)
	require.Empty(t, changes)
}

func TestDirectoriesTellOfNewSources(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, changes := watchFiles(t, nil, []string{dir})
	write(t, dir+"/notes.txt", "")
	write(t, dir+"/types.d.ts", "")
	write(t, dir+"/b.pinwheel.json", "{}")
	write(t, dir+"/a.ts", "")
	expect(t, changes, dir+"/a.ts", dir+"/b.pinwheel.json")
	require.NoError(t, os.Remove(dir+"/a.ts"))
	expect(t, changes, dir+"/a.ts")
}

func TestWatchingNothingThatExistsIsAnError(t *testing.T) {
	t.Parallel()
	w, err := bundle.OpenFileWatcher()
	require.NoError(t, err)
	defer func() { require.NoError(t, w.Close()) }()
	require.ErrorContains(t, w.Set(nil, []string{t.TempDir() + "/no"}), "watch ")
}

// A build may make the directory of a file that is watched: that is a change.
func TestDirectoryOfAWatchedFileIsMadeLater(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, changes := watchFiles(t, []string{dir + "/made/deep/config.json"}, nil)
	require.NoError(t, os.Mkdir(dir+"/made", 0o700))
	expect(t, changes, dir+"/made")
}
