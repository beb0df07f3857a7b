package bundle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Times of a FileWatcher: a save is often several writes and a rename.
const (
	quiet   = 40 * time.Millisecond  // a change ends when there was no event for this time
	longest = 500 * time.Millisecond // a change that does not end is reported after this time
)

// FileWatcher reports saved files. It watches their directories, because editors that save by renaming replace the
// watched file by another one.
type FileWatcher struct {
	notify *fsnotify.Watcher

	mu    sync.Mutex
	files map[string]bool // absolute paths
	dirs  map[string]bool // all sources and manifests in them are watched
}

// OpenFileWatcher opens a watcher on nothing. Close it after Run has returned.
func OpenFileWatcher() (*FileWatcher, error) {
	n, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch files: %w", err)
	}
	return &FileWatcher{notify: n, files: map[string]bool{}, dirs: map[string]bool{}}, nil
}

// Close ends the watches of the operating system.
func (w *FileWatcher) Close() error { return w.notify.Close() }

// Set replaces what is watched: files, which need not exist yet, nor their directories; DIR/* for all files of a
// directory; and directories with all their source files and manifests, also new ones, but not their subdirectories.
// Any goroutine may call it at any time.
func (w *FileWatcher) Set(files, dirs []string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.files, w.dirs = map[string]bool{}, map[string]bool{}
	want := map[string]bool{}
	for _, d := range dirs {
		abs, err := filepath.Abs(d)
		if err != nil {
			return fmt.Errorf("watch %s: %w", d, err)
		}
		w.dirs[abs], want[abs] = true, true
	}
	for _, f := range files {
		abs, err := filepath.Abs(f)
		if err != nil {
			return fmt.Errorf("watch %s: %w", f, err)
		}
		w.files[abs] = true
		dir := filepath.Dir(abs)
		for !exists(dir) && dir != filepath.Dir(dir) { // it may be made: that is a change, too
			w.files[dir] = true
			dir = filepath.Dir(dir)
		}
		want[dir] = true
	}
	for _, d := range w.notify.WatchList() {
		if !want[d] {
			// An error means that the watch is gone already, with its directory.
			_ = w.notify.Remove(d)
		}
	}
	for d := range want {
		if err := w.notify.Add(d); err != nil {
			return fmt.Errorf("watch %s: %w", d, err)
		}
	}
	return nil
}

// Run calls changed with the sorted absolute paths of files that were written, created, renamed or removed, a moment
// after the last change, until ctx is done. One goroutine calls changed.
func (w *FileWatcher) Run(ctx context.Context, changed func(paths []string)) error {
	pending := map[string]bool{}
	var first time.Time
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e, ok := <-w.notify.Events:
			if !ok {
				return errors.New("watch files: closed")
			}
			if !w.matters(e) {
				continue
			}
			if len(pending) == 0 {
				first = time.Now()
			}
			pending[e.Name] = true
			timer.Reset(max(0, min(quiet, longest-time.Since(first))))
		case err, ok := <-w.notify.Errors:
			if !ok {
				return errors.New("watch files: closed")
			}
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				return fmt.Errorf("watch files: %w", err)
			}
			// It is unknown which events were lost: report all files.
			w.mu.Lock()
			maps.Copy(pending, w.files)
			w.mu.Unlock()
			timer.Reset(quiet)
		case <-timer.C:
			paths := slices.Sorted(maps.Keys(pending))
			clear(pending)
			changed(paths)
		}
	}
}

// matters reports whether the event is about a watched file. Changes of permissions and times do not matter.
func (w *FileWatcher) matters(e fsnotify.Event) bool {
	if e.Op == fsnotify.Chmod {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.files[e.Name] || w.files[filepath.Join(filepath.Dir(e.Name), AnyName)] || w.dirs[filepath.Dir(e.Name)] &&
		(IsSource(e.Name) || isManifest(e.Name))
}

func isManifest(path string) bool {
	return len(path) > len(ManifestSuffix) && path[len(path)-len(ManifestSuffix):] == ManifestSuffix
}
