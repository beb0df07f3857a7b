package deploy_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/deploy/assets"
	"github.com/pinwheel-run/pinwheel/deploy/bundle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/env/assetstore"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// filesChild has the test binary deploy a directory of this name, once, to the server of deployChild.
const filesChild = "PINWHEEL_DEPLOY_FILES"

func deployDirectory(url, dir string) error {
	nc, err := natstest.Dial(url)
	if err != nil {
		return err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	s, err := deploy.Open(context.Background(), js, deploy.Config{})
	if err != nil {
		return err
	}
	_, err = s.Deploy(context.Background(), deploy.Request{Owner: "acme", Name: "w", Path: dir}, isFine)
	return err
}

// whole reads every file of a version as its list has it.
func whole(t *testing.T, files *assetstore.Store, w *workers.Worker) {
	t.Helper()
	l, err := files.List(t.Context(), w.Owner, w.Assets.Files)
	require.NoError(t, err, w.Version)
	for path, f := range l.Files {
		stored, err := files.Stored(t.Context(), w.Owner, f.Hash)
		require.NoError(t, err, path)
		var data []byte
		for n := 0; int64(len(data)) < stored.Size; n++ {
			part, err := files.Part(t.Context(), w.Owner, f.Hash, assets.Plain, n)
			require.NoError(t, err, path)
			data = append(data, part...)
		}
		require.Equal(t, f.Hash, assets.HashOf(data), path)
	}
}

// A deploy that is killed at any moment leaves a version with all of its files, or none. The next deploy stores the
// rest.
func TestFilesOfKilledDeploys(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	srv := natstest.Start(t)
	s := open(t, natstest.Connect(t, srv), deploy.Config{})
	js, err := jetstream.New(natstest.Connect(t, srv))
	require.NoError(t, err)
	files := assetstore.New(js, assetstore.Config{})
	require.NoError(t, files.Open(t.Context()))
	kv, err := js.KeyValue(t.Context(), assetstore.Bucket)
	require.NoError(t, err)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "pinwheel.json"), `{"assets": {"directory": "dist"}}`)
	versions := 0
	for round := range 8 {
		for i := range 20 {
			write(t, filepath.Join(dir, "dist", fmt.Sprint(i)), strings.Repeat(fmt.Sprint(round, i%15, " "),
				1+random.IntN(60_000)))
		}
		watch, err := kv.WatchAll(t.Context(), jetstream.UpdatesOnly())
		require.NoError(t, err)
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), deployChild+"="+srv.URL(), filesChild+"="+dir)
		child.Stderr = os.Stderr
		require.NoError(t, child.Start())
		ended := make(chan struct{})
		go func() { _ = child.Wait(); close(ended) }()
		killAfterUpdates(t, watch, 1+random.IntN(60), child, ended)
		require.NoError(t, watch.Stop())

		in, err := s.Installation(t.Context(), "acme", "w")
		if err == nil {
			for _, w := range in.Versions {
				whole(t, files, w)
			}
		}
		d, err := s.Deploy(t.Context(), deploy.Request{Owner: "acme", Name: "w", Path: dir}, isFine)
		require.NoError(t, err)
		whole(t, files, d.Worker)
		require.Greater(t, d.Worker.Number, versions)
		versions = d.Worker.Number
	}
}

// killAfterUpdates kills the child after so many keys were written. A child that ends before, wrote fewer.
func killAfterUpdates(t *testing.T, watch jetstream.KeyWatcher, left int, child *exec.Cmd, ended <-chan struct{}) {
	t.Helper()
	for ; left > 0; left-- {
		select {
		case <-watch.Updates():
		case <-ended:
			return
		}
	}
	_ = child.Process.Kill() // it may have ended by now
	<-ended
}

// The files of a version stay while it is kept, and go with it.
func TestFilesGoWithTheirVersion(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	s := open(t, natstest.Connect(t, srv), deploy.Config{})
	js, err := jetstream.New(natstest.Connect(t, srv))
	require.NoError(t, err)
	files := assetstore.New(js, assetstore.Config{})
	dir := t.TempDir()
	write(t, filepath.Join(dir, "pinwheel.json"), `{"assets": {"directory": "dist"}}`)
	write(t, filepath.Join(dir, "dist/same"), "same")
	var all []*workers.Worker
	for n := range deploy.History + 2 {
		write(t, filepath.Join(dir, "dist/own"), fmt.Sprint("version ", n))
		d, err := s.Deploy(t.Context(), deploy.Request{Owner: "acme", Name: "w", Path: dir}, isFine)
		require.NoError(t, err)
		all = append(all, d.Worker)
	}
	for _, w := range all[2:] {
		whole(t, files, w)
	}
	for _, w := range all[:2] {
		_, err = files.List(t.Context(), "acme", w.Assets.Files)
		require.ErrorIs(t, err, assetstore.ErrNotFound)
	}
	// A deploy of what is there mends what was lost.
	kv, err := js.KeyValue(t.Context(), assetstore.Bucket)
	require.NoError(t, err)
	require.NoError(t, kv.Purge(t.Context(), "acme."+assets.HashOf([]byte("same"))))
	d, err := s.Deploy(t.Context(), deploy.Request{Owner: "acme", Name: "w", Path: dir}, isFine)
	require.NoError(t, err)
	require.False(t, d.Stored)
	require.Equal(t, 1, d.Files.Files)
	whole(t, files, d.Worker)
}

func TestFilesThatAreRefused(t *testing.T) {
	t.Parallel()
	s := newStore(t, deploy.Config{})
	_, err := s.Deploy(t.Context(), deploy.Request{Owner: "acme", Name: "w", Bundle: &bundle.Bundle{
		Code: "export default {}", File: "w.js",
		Spec: workers.Spec{Assets: &workers.Assets{Directory: "dist", Files: strings.Repeat("0", 64)}},
	}}, isFine)
	require.ErrorAs(t, err, new(*deploy.InvalidError))
	require.ErrorContains(t, err, "the files did not come with the bundle")
}
