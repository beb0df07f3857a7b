package assetstore

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/andybalholm/brotli"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy/assets"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

func open(t *testing.T, cfg Config) *Store {
	t.Helper()
	js, err := jetstream.New(natstest.Connect(t, natstest.Start(t)))
	require.NoError(t, err)
	return New(js, cfg)
}

func folder(t *testing.T, files map[string]string) *assets.Folder {
	t.Helper()
	dir := t.TempDir()
	for path, data := range files {
		full := filepath.Join(dir, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(full), 0o700))
		require.NoError(t, os.WriteFile(full, []byte(data), 0o600))
	}
	f, err := assets.Open(dir, "dist")
	require.NoError(t, err)
	return f
}

// whole reads a file in an encoding.
func whole(t *testing.T, s *Store, owner, hash string, e assets.Encoding) (string, error) {
	t.Helper()
	stored, err := s.Stored(t.Context(), owner, hash)
	if err != nil {
		return "", err
	}
	size, ok := stored.SizeOf(e)
	require.True(t, ok)
	var b bytes.Buffer
	for n := 0; int64(b.Len()) < size; n++ {
		part, err := s.Part(t.Context(), owner, hash, e, n)
		if err != nil {
			return "", err
		}
		b.Write(part)
	}
	require.EqualValues(t, size, b.Len())
	return b.String(), nil
}

func TestFilesComeBack(t *testing.T) {
	t.Parallel()
	noise := make([]byte, 300<<10)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	text := strings.Repeat("some text, ", 40_000)
	f := folder(t, map[string]string{"index.html": text, "photo.png": string(noise), "empty.txt": "", "short.css": "a{}"})
	s := open(t, Config{})
	up, err := s.Upload(t.Context(), "acme", f)
	require.NoError(t, err)
	require.Equal(t, Uploaded{4, int64(len(noise) + len(text) + 3)}, up)
	up, err = s.Upload(t.Context(), "acme", f)
	require.NoError(t, err)
	require.Equal(t, Uploaded{}, up, "everything is there")

	l, err := s.List(t.Context(), "acme", f.Hash)
	require.NoError(t, err)
	require.Equal(t, f.List, l)
	for path, want := range map[string]string{"/index.html": text, "/photo.png": string(noise), "/empty.txt": "",
		"/short.css": "a{}"} {
		got, err := whole(t, s, "acme", l.Files[path].Hash, assets.Plain)
		require.NoError(t, err)
		require.Equal(t, want, got, path)
	}
	stored, err := s.Stored(t.Context(), "acme", l.Files["/photo.png"].Hash)
	require.NoError(t, err)
	require.Equal(t, assets.Stored{Size: int64(len(noise))}, stored, "it is compressed already")
	small, err := whole(t, s, "acme", l.Files["/index.html"].Hash, assets.Gzip)
	require.NoError(t, err)
	zr, err := gzip.NewReader(strings.NewReader(small))
	require.NoError(t, err)
	got, err := io.ReadAll(zr)
	require.NoError(t, err)
	require.Equal(t, text, string(got))
	small, err = whole(t, s, "acme", l.Files["/index.html"].Hash, assets.Brotli)
	require.NoError(t, err)
	got, err = io.ReadAll(brotli.NewReader(strings.NewReader(small)))
	require.NoError(t, err)
	require.Equal(t, text, string(got))

	_, err = s.List(t.Context(), "other", f.Hash)
	require.ErrorIs(t, err, ErrNotFound, "owners share nothing")
}

// A file whose upload was cut has no key, so the next deploy stores it.
func TestUploadThatIsCut(t *testing.T) {
	t.Parallel()
	f := folder(t, map[string]string{"a.bin": strings.Repeat("x", 20<<20), "b.bin": strings.Repeat("y", 1<<20)})
	s := open(t, Config{})
	require.NoError(t, s.Open(t.Context()))
	ctx, cut := context.WithCancel(t.Context())
	cut()
	_, err := s.Upload(ctx, "acme", f)
	require.Error(t, err)
	require.NoError(t, os.Remove(filepath.Join(filepath.Dir(f.Inputs()[0]), "b.bin")))
	_, err = s.Upload(t.Context(), "acme", f)
	require.ErrorContains(t, err, "b.bin: it cannot be read")
	_, err = s.List(t.Context(), "acme", f.Hash)
	require.ErrorIs(t, err, ErrNotFound, "the list comes last")
	_, err = s.Stored(t.Context(), "acme", f.List.Files["/b.bin"].Hash)
	require.ErrorIs(t, err, ErrNotFound)
}

func TestBucketThatIsFull(t *testing.T) {
	t.Parallel()
	s := open(t, Config{MaxBytes: 1 << 20})
	_, err := s.Upload(t.Context(), "acme", folder(t, map[string]string{"a.bin": strings.Repeat("x", 4<<20)}))
	require.ErrorContains(t, err, "PINWHEEL_ASSETS_MAX_BYTES bounds it")
}

// Where only the compressed copies decide whether there is room, the bucket is looked at once, and files are compressed
// until there is no room.
func TestRoomIsCountedOnce(t *testing.T) {
	t.Parallel()
	text := func(n int) string { return strings.Repeat(fmt.Sprint("some text ", n, ", "), 1000) }
	files := map[string]string{}
	for n := range 4 {
		files[fmt.Sprint(n, ".txt")] = text(n)
	}
	f := folder(t, files)
	size := int64(4*len(text(0)) + 8<<10)
	looks, free := 0, size
	s := open(t, Config{Room: func(_ context.Context, owner string, _ bool) (func(int64) error, error) {
		looks++
		return func(bytes int64) error {
			if bytes > free {
				return errors.New("full")
			}
			return nil
		}, nil
	}})
	up, err := s.Upload(t.Context(), "acme", f)
	require.NoError(t, err)
	require.Equal(t, 4, up.Files)
	require.Equal(t, 1, looks)
	stored, err := s.Stored(t.Context(), "acme", f.List.Files["/0.txt"].Hash)
	require.NoError(t, err)
	require.NotZero(t, stored.Gzip)
	got, err := whole(t, s, "acme", f.List.Files["/0.txt"].Hash, assets.Plain)
	require.NoError(t, err)
	require.Equal(t, text(0), got)

	file := pendingFile{hash: "h", size: size, compress: true}
	copies, err := file.smaller(t.Context(), []byte(strings.Repeat("some text, ", 1000)))
	require.NoError(t, err)
	require.Len(t, copies, 2)
	again, err := file.smaller(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, copies, again, "they are made once")

	free = int64(len(text(0)))
	_, err = s.Upload(t.Context(), "beta", f)
	require.EqualError(t, err, "full")
	require.Equal(t, 2, looks)
	_, err = s.Stored(t.Context(), "beta", f.List.Files["/0.txt"].Hash)
	require.ErrorIs(t, err, ErrNotFound, "nothing is stored")
}

// What no kept list names goes; what another owner has, and what a deploy uses at the same time, stays.
func TestSweep(t *testing.T) {
	t.Parallel()
	s := open(t, Config{})
	first := folder(t, map[string]string{"a": "one", "both": "both"})
	second := folder(t, map[string]string{"a": "two", "both": "both"})
	for _, f := range []*assets.Folder{first, second} {
		_, err := s.Upload(t.Context(), "acme", f)
		require.NoError(t, err)
	}
	_, err := s.Upload(t.Context(), "other", first)
	require.NoError(t, err)

	d, err := s.Begin(t.Context(), "acme")
	require.NoError(t, err)
	alone, err := d.End(t.Context(), nil)
	require.NoError(t, err)
	require.True(t, alone)
	// A deploy that begins now may need anything.
	late, err := s.Begin(t.Context(), "acme")
	require.NoError(t, err)
	_, err = d.Sweep(t.Context(), []string{second.Hash})
	require.Error(t, err)
	_, err = s.List(t.Context(), "acme", first.Hash)
	require.NoError(t, err)

	again, err := s.Begin(t.Context(), "acme")
	require.NoError(t, err)
	alone, err = again.End(t.Context(), nil)
	require.NoError(t, err)
	require.True(t, alone, "the one before has not ended, and nobody began")
	n, err := again.Sweep(t.Context(), []string{second.Hash})
	require.NoError(t, err)
	require.Equal(t, 2, n, "a file and a list")
	_, err = s.Stored(t.Context(), "acme", first.List.Files["/a"].Hash)
	require.ErrorIs(t, err, ErrNotFound)
	for _, path := range []string{"/a", "/both"} {
		_, err = whole(t, s, "acme", second.List.Files[path].Hash, assets.Plain)
		require.NoError(t, err)
		_, err = whole(t, s, "other", first.List.Files[path].Hash, assets.Plain)
		require.NoError(t, err)
	}

	// The deploy that was under way notices, and stores again what it needs.
	alone, err = late.End(t.Context(), first)
	require.NoError(t, err)
	require.False(t, alone)
	got, err := whole(t, s, "acme", first.List.Files["/a"].Hash, assets.Plain)
	require.NoError(t, err)
	require.Equal(t, "one", got)
}

// Deploys of an owner that come at the same time, with sweeps between them, leave each version that is kept whole.
func TestSweepsBesideDeploys(t *testing.T) {
	t.Parallel()
	s := open(t, Config{})
	var mu sync.Mutex
	kept := map[int]*assets.Folder{}
	var all sync.WaitGroup
	for who := range 4 {
		folders := make([]*assets.Folder, 6)
		for i := range folders {
			folders[i] = folder(t, map[string]string{"own": fmt.Sprint(who, i%3), "shared": fmt.Sprint(i % 2)})
		}
		all.Go(func() {
			for _, f := range folders {
				d, err := s.Begin(t.Context(), "acme")
				if err == nil {
					_, err = s.Upload(t.Context(), "acme", f)
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				kept[who] = f // the version is stored
				mu.Unlock()
				alone, err := d.End(t.Context(), f)
				if err != nil {
					t.Error(err)
					return
				}
				if !alone {
					continue
				}
				var keep []string
				mu.Lock()
				for _, k := range kept {
					keep = append(keep, k.Hash)
				}
				mu.Unlock()
				_, _ = d.Sweep(t.Context(), keep) // it stops when another deploy begins
			}
		})
	}
	all.Wait()
	for who, f := range kept {
		l, err := s.List(t.Context(), "acme", f.Hash)
		require.NoError(t, err, who)
		for path, file := range l.Files {
			_, err := whole(t, s, "acme", file.Hash, assets.Plain)
			require.NoError(t, err, "%d %s", who, path)
		}
	}
}

func TestCache(t *testing.T) {
	t.Parallel()
	c := newCache(100)
	reads := atomic.Int64{}
	read := func(hash string, bytes int64) (string, error) {
		return cached(t.Context(), c, cacheKey{hash: hash}, func(context.Context) (string, int64, error) {
			reads.Add(1)
			return hash, bytes, nil
		})
	}
	for _, step := range []struct {
		hash  string
		reads int64
	}{{"a", 1}, {"b", 2}, {"a", 2}, {"c", 3}, {"a", 3}, {"b", 4}} { // b was not used for longest when c came
		got, err := read(step.hash, 40)
		require.NoError(t, err)
		require.Equal(t, step.hash, got)
		require.Equal(t, step.reads, reads.Load())
	}
	_, err := read("larger than all", 101)
	require.NoError(t, err)
	require.Empty(t, c.entries)
	require.EqualValues(t, 100, c.left)

}

// Many ask at the same time, and it is read once. An error is not kept.
func TestCacheReadsOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, reads, goOn := newCache(100), atomic.Int64{}, make(chan struct{})
		ask := func(ctx context.Context) error {
			_, err := cached(ctx, c, cacheKey{hash: "slow"}, func(context.Context) (int, int64, error) {
				reads.Add(1)
				<-goOn
				return 0, 1, errors.New("broken")
			})
			return err
		}
		var asking sync.WaitGroup
		for range 10 {
			asking.Go(func() {
				if err := ask(t.Context()); err == nil || err.Error() != "broken" {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, ask(ctx), context.Canceled, "who waits may go")
		close(goOn)
		asking.Wait()
		require.EqualValues(t, 1, reads.Load())
		require.Empty(t, c.loads)
		require.Empty(t, c.entries)
	})
}
