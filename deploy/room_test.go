package deploy_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/deploy/assets"
	"github.com/pinwheel-run/pinwheel/deploy/bundle"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/env/assetstore"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// small opens a store whose buckets have 1 MiB each, and returns a function with the state of the stream of each.
func small(t *testing.T,
	cfg deploy.Config) (*deploy.Store, jetstream.JetStream, func(stream string) jetstream.StreamState) {
	t.Helper()
	cfg.MaxBytes, cfg.AssetsMaxBytes = 1<<20, 1<<20
	nc := natstest.Connect(t, natstest.Start(t))
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	return open(t, nc, cfg), js, func(stream string) jetstream.StreamState {
		t.Helper()
		s, err := js.Stream(t.Context(), stream)
		require.NoError(t, err)
		return s.CachedInfo().State
	}
}

// padded is a module of so many bytes.
func padded(n, bytes int) *bundle.Bundle {
	b := module(n)
	b.Code += "\n//" + strings.Repeat("x", bytes)
	return b
}

// A bucket that is full refuses a deploy, and says what to do. Nothing of the deploy is stored. What is there can be
// removed, which makes room.
func TestFullBucketsRefuseDeploys(t *testing.T) {
	t.Parallel()
	for bucket, cfg := range map[string]deploy.Config{deploy.DefaultBucket: {},
		deploy.DefaultObjects: {InlineLimit: 10 << 10}} {
		t.Run(bucket, func(t *testing.T) {
			t.Parallel()
			s, js, state := small(t, cfg)
			streams := []string{"KV_" + deploy.DefaultBucket, "OBJ_" + deploy.DefaultObjects, "KV_" + deploy.BucketDeployments}
			all := func() (list []uint64) {
				for _, stream := range streams {
					list = append(list, state(stream).LastSeq)
				}
				return list
			}
			mustDeploy(t, s, "acme", "other", padded(1, 90<<10))
			err, before := error(nil), []uint64(nil)
			for n := 1; err == nil && n < 30; n++ {
				before = all()
				_, err = s.Deploy(t.Context(), deploy.Request{Owner: "acme", Name: "w", Bundle: padded(n, 90<<10)}, isFine)
			}
			var full *resources.FullError
			require.ErrorAs(t, err, &full)
			require.ErrorContains(t, err, "bucket "+bucket+" is full and may have 1MiB")
			require.ErrorContains(t, err, "'pinwheel workers rm'")
			require.ErrorContains(t, err, "PINWHEEL_WORKERS_MAX_BYTES and run 'pinwheel resources apply'")
			require.Equal(t, before, all(), "nothing is stored")
			versions, err := s.Versions(t.Context(), "acme", "w")
			require.NoError(t, err)
			require.Greater(t, len(versions), 5)

			for i, size := 0, 8<<10; err == nil || size > 90; i++ { // other clients leave no room for a marker either
				if err != nil {
					size = max(90, size/4)
				}
				subject := map[string]string{deploy.DefaultBucket: "$KV." + bucket + ".zz.", deploy.DefaultObjects: "$O." + bucket +
					".C.zz"}[bucket]
				_, err = js.Publish(t.Context(), fmt.Sprint(subject, i), make([]byte, size))
			}
			require.True(t, resources.IsFull(err))
			require.NoError(t, s.Remove(t.Context(), "acme", "w"))
			_, err = s.Versions(t.Context(), "acme", "w")
			require.ErrorIs(t, err, deploy.ErrNotFound)
			mustDeploy(t, s, "acme", "w", padded(1, 90<<10))
			w, err := s.Get(t.Context(), "acme", "other", "")
			require.NoError(t, err)
			require.Equal(t, padded(1, 90<<10).Code, w.Code)
		})
	}
}

// Deployments that have filled their bucket stop no deploy half-way, and no step of a rollout.
func TestFullBucketOfDeployments(t *testing.T) {
	t.Parallel()
	s, js, state := small(t, deploy.Config{})
	mustDeploy(t, s, "acme", "w", module(1))
	_, err := s.Deploy(t.Context(), deploy.Request{Owner: "acme", Name: "w", Bundle: module(2), Steps: gradual}, isFine)
	require.NoError(t, err)
	for i := 0; state("KV_"+deploy.BucketDeployments).Bytes < 1<<20-20<<10; i++ {
		_, err := js.Publish(t.Context(), fmt.Sprint("$KV."+deploy.BucketDeployments+".zz.w", i), make([]byte, 8<<10))
		require.NoError(t, err)
	}
	before := state("KV_" + deploy.DefaultBucket).LastSeq
	_, err = s.Deploy(t.Context(), deploy.Request{Owner: "beta", Name: "w", Bundle: module(1)}, isFine)
	var full *resources.FullError
	require.ErrorAs(t, err, &full)
	require.Equal(t, deploy.BucketDeployments, full.Bucket)
	require.Equal(t, before, state("KV_"+deploy.DefaultBucket).LastSeq, "the version would run without its deployment")
	in, err := s.Installation(t.Context(), "acme", "w")
	require.NoError(t, err)
	d, changed, err := s.Redeploy(t.Context(), "acme", "w", deploy.Advance(in.Deployment, "it fails"))
	require.NoError(t, err)
	require.True(t, changed)
	require.Equal(t, workers.RolloutRolledBack, d.Rollout.State)
}

// An owner that deploys by itself has at most as much of each bucket as is free for all others.
func TestOwnersShareBuckets(t *testing.T) {
	t.Parallel()
	host := workers.Policy{Hosts: []string{workers.AnyHost}}
	request := func(owner string, n int) deploy.Request {
		return deploy.Request{Owner: owner, Name: fmt.Sprint("w", n), Bundle: padded(n, 20<<10), Bounded: true, Policy: host}
	}
	routes := func(owner string, n int) deploy.Request {
		r := request(owner, n)
		r.Bundle = module(n)
		r.Bundle.HTTP = &workers.HTTP{}
		for i := range 100 {
			r.Bundle.HTTP.Routes = append(r.Bundle.HTTP.Routes, fmt.Sprintf("%s.test/%s%d-%d/*", owner, strings.Repeat("x", 500),
				n, i))
		}
		return r
	}
	for bucket, of := range map[string]struct {
		cfg    deploy.Config
		change func(s *deploy.Store, owner string, n int) error
	}{
		deploy.DefaultBucket: {change: func(s *deploy.Store, owner string, n int) error {
			_, err := s.Deploy(t.Context(), request(owner, n), isFine)
			return err
		}},
		deploy.DefaultObjects: {deploy.Config{InlineLimit: 10 << 10}, func(s *deploy.Store, owner string, n int) error {
			_, err := s.Deploy(t.Context(), request(owner, n), isFine)
			return err
		}},
		deploy.BucketDeployments: {change: func(s *deploy.Store, owner string, n int) error {
			r := deploy.Request{Owner: owner, Name: fmt.Sprint("w", n/60), Bundle: module(1), Bounded: true}
			if _, err := s.Deploy(t.Context(), r, isFine); err != nil {
				return err
			}
			if err := s.AdmitDeployment(t.Context(), owner, r.Name); err != nil {
				return err
			}
			_, _, err := s.Redeploy(t.Context(), owner, r.Name, withNote(fmt.Sprint(n)))
			return err
		}},
		assetstore.Bucket: {change: func(s *deploy.Store, owner string, n int) error {
			return deploySite(t, s, owner, fmt.Sprint("w", n), noise(n, 60<<10))
		}},
		deploy.BucketRoutes: {change: func(s *deploy.Store, owner string, n int) error {
			_, err := s.Deploy(t.Context(), routes(owner, n), isFine)
			return err
		}},
	} {
		t.Run(bucket, func(t *testing.T) {
			t.Parallel()
			s, _, _ := small(t, of.cfg)
			var err error
			for n := 0; err == nil && n < 1000; n++ {
				err = of.change(s, "acme", n)
			}
			var quota *deploy.QuotaError
			require.ErrorAs(t, err, &quota)
			require.ErrorContains(t, err, "in bucket "+bucket)
			require.ErrorContains(t, err, "are left for all owners")
			for n := range 2 {
				require.NoError(t, of.change(s, "beta", n))
			}
		})
	}
}

// noise is text that no compression makes smaller, and another one for each n.
func noise(n, bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.NewChaCha8([32]byte{byte(n), byte(n >> 8)}).Read(b)
	return string(b)
}

// deploySite deploys a file as an owner does it: the file and the list are stored first.
func deploySite(t *testing.T, s *deploy.Store, owner, name, data string) error {
	l := assets.List{Files: map[string]assets.File{"/a.bin": {Hash: assets.HashOf([]byte(data)), Size: int64(len(data)),
		Type: "application/octet-stream"}}}
	text, hash, err := l.Encode()
	require.NoError(t, err)
	files := []deploy.NewFile{{Hash: assets.HashOf([]byte(data)), Data: []byte(data)}, {Hash: hash, Data: text}}
	_, err = deploy.AddFiles(t.Context(), s, owner, files, workers.Policy{}, true)
	if err != nil {
		return err
	}
	b := module(1)
	b.Assets = &workers.Assets{Directory: "dist", Files: hash}
	_, err = s.Deploy(t.Context(), deploy.Request{Owner: owner, Name: name, Bundle: b, Bounded: true, FilesStored: true},
		isFine)
	return err
}

// A bucket of files that is full refuses a deploy before anything of it is stored. Removals work in it, to its last
// byte, and make room.
func TestFullBucketOfFiles(t *testing.T) {
	t.Parallel()
	s, js, state := small(t, deploy.Config{})
	stream := resources.BucketStream(assetstore.Bucket)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "pinwheel.json"), `{"assets": {"directory": "dist"}}`)
	put := func(name, data string) (deploy.Deployed, error) {
		write(t, filepath.Join(dir, "dist/a.txt"), data)
		return s.Deploy(t.Context(), deploy.Request{Owner: "acme", Name: name, Path: dir}, isFine)
	}
	other, err := put("other", noise(0, 90<<10))
	require.NoError(t, err)
	_, err = put("text", strings.Repeat("some text, ", 50_000))
	require.NoError(t, err, "its compressed copies are small")
	require.NoError(t, s.Remove(t.Context(), "acme", "text"))
	versions, before := uint64(0), jetstream.StreamState{}
	for n := 1; err == nil && n < 30; n++ {
		versions, before = state("KV_"+deploy.DefaultBucket).LastSeq, state(stream)
		_, err = put("w", noise(n, 90<<10))
	}
	refused := func(err error) {
		t.Helper()
		var full *resources.FullError
		require.ErrorAs(t, err, &full)
		require.ErrorContains(t, err, "bucket PINWHEEL_ASSETS is full and may have 1MiB")
		require.ErrorContains(t, err, "'pinwheel workers rm'")
		require.ErrorContains(t, err, "PINWHEEL_ASSETS_MAX_BYTES and run 'pinwheel resources apply'")
		require.Equal(t, versions, state("KV_"+deploy.DefaultBucket).LastSeq, "the version would run without its files")
		require.Equal(t, before.Msgs, state(stream).Msgs, "nothing is stored")
		require.Equal(t, before.Bytes, state(stream).Bytes, "nothing is stored")
	}
	refused(err)
	_, err = deploy.AddFiles(t.Context(), s, "beta", []deploy.NewFile{
		{Hash: assets.HashOf([]byte(noise(100, 90<<10))), Data: []byte(noise(100, 90<<10))}}, workers.Policy{}, false)
	before.Msgs, before.Bytes = state(stream).Msgs, state(stream).Bytes // with the key of the deploys of beta
	refused(err)
	kv, err := js.KeyValue(t.Context(), assetstore.Bucket)
	require.NoError(t, err)
	keys, err := kv.ListKeysFiltered(t.Context(), "beta.>")
	require.NoError(t, err)
	for key := range keys.Keys() {
		require.Equal(t, "beta.deploys", key)
	}

	for i, size := 0, 8<<10; err == nil || size > 0; i++ { // other clients leave no room for a marker either
		if err != nil {
			size /= 4
		}
		_, err = js.Publish(t.Context(), fmt.Sprint("$KV.PINWHEEL_ASSETS.zz.", i), make([]byte, size))
	}
	require.True(t, resources.IsFull(err))
	require.NoError(t, s.Remove(t.Context(), "acme", "w"))
	require.Less(t, state(stream).Bytes, before.Bytes/2)
	_, err = put("w", noise(1, 90<<10))
	require.NoError(t, err)
	whole(t, assetstore.New(js, assetstore.Config{}), other.Worker)
}

// Files that no version has make room for others of their owner, whether the bucket is full or the owner's share.
func TestUnusedFilesMakeRoom(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		policy  workers.Policy
		bounded bool
	}{
		"a full bucket": {},
		"a share":       {bounded: true},
		"a policy":      {workers.Policy{AssetBytes: 300 << 10}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _, _ := small(t, deploy.Config{})
			for n := range 40 { // each fits, and all do not
				data := []byte(noise(n, 90<<10))
				up, err := deploy.AddFiles(t.Context(), s, "acme", []deploy.NewFile{{Hash: assets.HashOf(data), Data: data}},
					c.policy, c.bounded)
				require.NoError(t, err)
				require.Equal(t, 1, up.Files)
			}
		})
	}
}

// withNote changes a deployment, with long notes.
func withNote(text string) deploy.Change {
	long := strings.Repeat("y", events.MaxNote-len(text)) + text
	return func(in workers.Installation, _ []workers.Deployment) (workers.Deployment, error) {
		d := in.Deployment
		d.By, d.Message = long, long
		return d, nil
	}
}

// New buckets have bounds. Those of an earlier release keep what they have: nothing that starts takes room away.
func TestBucketsAreBounded(t *testing.T) {
	t.Parallel()
	for _, earlier := range []bool{false, true} {
		nc := natstest.Connect(t, natstest.Start(t))
		js, err := jetstream.New(nc)
		require.NoError(t, err)
		if earlier {
			for _, bucket := range []string{deploy.DefaultBucket, deploy.BucketDeployments, deploy.BucketOwners,
				deploy.BucketRoutes} {
				_, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: bucket, History: 5})
				require.NoError(t, err)
			}
			_, err = js.CreateObjectStore(t.Context(), jetstream.ObjectStoreConfig{Bucket: deploy.DefaultObjects})
			require.NoError(t, err)
		}
		s := open(t, nc, deploy.Config{})
		for stream, most := range map[string]int64{
			"KV_" + deploy.DefaultBucket: 512 << 20, "OBJ_" + deploy.DefaultObjects: 512 << 20,
			"KV_" + deploy.BucketDeployments: 64 << 20,
			"KV_" + deploy.BucketOwners:      16 << 20, "KV_" + deploy.BucketRoutes: 16 << 20,
		} {
			if earlier {
				most = -1
			}
			of, err := js.Stream(t.Context(), stream)
			require.NoError(t, err)
			require.Equal(t, most, of.CachedInfo().Config.MaxBytes, stream)
		}
		mustDeploy(t, s, "acme", "w", module(1))
	}
	require.Error(t, deploy.Config{MaxBytes: 5}.Validate())
	require.Error(t, deploy.Config{MaxBytes: -2}.Validate())
	require.NoError(t, deploy.Config{MaxBytes: deploy.Unlimited}.Validate())
}
