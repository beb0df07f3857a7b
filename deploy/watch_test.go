package deploy_test

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/process/natsd"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// patience is how long tests wait for a fact on a busy machine.
const patience = time.Minute

func portOf(t testing.TB, address string) int {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	port, err := strconv.Atoi(u.Port())
	require.NoError(t, err)
	return port
}

// routes records what a Watcher tells it, as a routing table would.
type routes struct {
	mu       sync.Mutex
	versions map[string][]string // by target, the active versions in their order
	has      map[string]workers.Installation
	removed  int
	changed  chan struct{} // closed and replaced at every change
}

func newRoutes() *routes {
	return &routes{versions: map[string][]string{}, has: map[string]workers.Installation{}, changed: make(chan struct{})}
}

func (r *routes) change(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *routes) Install(in workers.Installation) {
	r.change(func() {
		r.has[in.Target()] = in
		if list := r.versions[in.Target()]; len(list) == 0 || list[len(list)-1] != in.Deployment.Base() {
			r.versions[in.Target()] = append(list, in.Deployment.Base())
		}
	})
}

func (r *routes) Remove(owner, name string) {
	r.change(func() { delete(r.versions, owner+"/"+name); delete(r.has, owner+"/"+name); r.removed++ })
}

func (r *routes) of(target string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.versions[target])
}

func (r *routes) get(target string) workers.Installation {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.has[target]
}

// awaitDeployment returns when a deployment is in effect.
func (r *routes) awaitDeployment(t testing.TB, target string, d workers.Deployment) {
	t.Helper()
	deadline := time.After(patience)
	for {
		r.mu.Lock()
		got, changed := r.has[target].Deployment, r.changed
		r.mu.Unlock()
		if got.Number == d.Number && slices.Equal(got.Split, d.Split) {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("%s has deployment %+v, want %+v", target, got, d)
		}
	}
}

// await returns when the worker's installed versions end as wanted.
func (r *routes) await(t testing.TB, target string, want ...string) {
	t.Helper()
	deadline := time.After(patience)
	for {
		r.mu.Lock()
		got, changed := slices.Clone(r.versions[target]), r.changed
		r.mu.Unlock()
		if slices.Equal(got, want) {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("%s has versions %v, want %v", target, got, want)
		}
	}
}

// run starts a watcher that ends with the test, and waits until it is ready.
func run(t testing.TB, s *deploy.Store, into deploy.Installer) {
	t.Helper()
	w := s.Watcher(into)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
	})
	select {
	case <-w.Ready():
	case <-time.After(patience):
		t.Fatal("the watcher is not ready")
	}
}

func TestWatcherInstallsHistoryThenChanges(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	s := open(t, natstest.Connect(t, srv), deploy.Config{})
	v1 := mustDeploy(t, s, "acme", "w", module(1)).Version
	v2 := mustDeploy(t, s, "acme", "w", bigModule(t, 2)).Version
	mustDeploy(t, s, "acme", "gone", module(1))
	require.NoError(t, s.Remove(t.Context(), "acme", "gone"))

	r := newRoutes()
	run(t, open(t, natstest.Connect(t, srv), deploy.Config{}), r)
	require.Equal(t, []string{v2}, r.of("acme/w"))
	require.NotNil(t, r.has["acme/w"].Version(v1))
	require.Empty(t, r.of("acme/gone"))

	v3 := mustDeploy(t, s, "acme", "w", module(3)).Version
	r.await(t, "acme/w", v2, v3)
	require.NoError(t, s.Remove(t.Context(), "acme", "w"))
	r.await(t, "acme/w")
	again := mustDeploy(t, s, "acme", "w", module(1)).Version
	require.Equal(t, v1, again)
	r.await(t, "acme/w", again)
}

func TestWatcherSkipsWhatItCannotRead(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	s := open(t, nc, deploy.Config{})
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	kv, err := js.KeyValue(t.Context(), deploy.DefaultBucket)
	require.NoError(t, err)
	v1 := mustDeploy(t, s, "acme", "w", module(1)).Version
	good, err := kv.Get(t.Context(), "acme.w")
	require.NoError(t, err)
	for key, text := range map[string]string{
		"acme.w": "garbage", "acme.other": string(good.Value()), "what.is.this": "{}", "x": `{"format":1}`,
	} {
		_, err := kv.PutString(t.Context(), key, text)
		require.NoError(t, err)
	}
	objects, err := js.ObjectStore(t.Context(), deploy.DefaultObjects)
	require.NoError(t, err)
	lost := mustDeploy(t, s, "acme", "lost", bigModule(t, 1))
	require.NoError(t, objects.Delete(t.Context(), "acme.lost."+lost.Hash))

	r := newRoutes()
	run(t, s, r)
	require.Equal(t, map[string][]string{"acme/w": {v1}}, r.versions)
	v := mustDeploy(t, s, "acme", "next", module(1)).Version
	r.await(t, "acme/next", v)
}

func TestWatcherOutlivesTheServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	srv, err := natsd.Open(natsd.Config{StoreDir: dir, Port: -1})
	require.NoError(t, err)
	port := portOf(t, srv.URL())
	connect := func() *nats.Conn {
		nc, err := natstest.Dial(srv.URL(), nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond))
		require.NoError(t, err)
		t.Cleanup(nc.Close)
		return nc
	}
	s := open(t, connect(), deploy.Config{})
	v1 := mustDeploy(t, s, "acme", "stays", module(1)).Version
	mustDeploy(t, s, "acme", "goes", module(1))
	r := newRoutes()
	run(t, open(t, connect(), deploy.Config{CheckEvery: 50 * time.Millisecond}), r)

	srv.Close()
	srv, err = natsd.Open(natsd.Config{StoreDir: dir, Port: port})
	require.NoError(t, err)
	t.Cleanup(srv.Close)
	s = open(t, connect(), deploy.Config{})
	require.NoError(t, s.Remove(t.Context(), "acme", "goes"))
	v2 := mustDeploy(t, s, "acme", "stays", module(2)).Version
	r.await(t, "acme/stays", v1, v2)
	r.await(t, "acme/goes")
}

func TestWatcherResyncsWhenTheBucketIsCreatedAgain(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	s := open(t, nc, deploy.Config{CheckEvery: 20 * time.Millisecond})
	v1 := mustDeploy(t, s, "acme", "w", module(1)).Version
	v2 := mustDeploy(t, s, "acme", "w", module(2)).Version
	mustDeploy(t, s, "acme", "goes", module(1))
	r := newRoutes()
	run(t, s, r)

	require.NoError(t, js.DeleteKeyValue(t.Context(), deploy.DefaultBucket))
	s = open(t, nc, deploy.Config{})
	require.Equal(t, v1, mustDeploy(t, s, "acme", "w", module(1)).Version)
	// v1 is known, and it is active now.
	r.await(t, "acme/w", v2, v1)
	require.NotEmpty(t, r.of("acme/goes"), "it was not removed")
	require.ErrorIs(t, s.Remove(t.Context(), "acme", "goes"), deploy.ErrNotFound)
	r.await(t, "acme/goes")
}

func TestASecondPassRepeatsNothing(t *testing.T) {
	t.Parallel()
	s := newStore(t, deploy.Config{})
	mustDeploy(t, s, "acme", "w", module(1))
	require.NoError(t, s.Remove(t.Context(), "acme", "w"))
	mustDeploy(t, s, "acme", "w", module(2))
	v2 := mustDeploy(t, s, "acme", "w", module(3)).Version
	r := newRoutes()
	w := s.Watcher(r)
	want := []string{v2}
	for n := range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- w.Run(ctx) }()
		<-w.Ready()
		want = append(want, mustDeploy(t, s, "acme", "w", module(10+n)).Version)
		r.await(t, "acme/w", want...)
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
	}
	require.Zero(t, r.removed, "the old removal is no reason to forget what came after it")
}

func TestActivationReachesEveryProcess(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	const processes, deploys = 3, 40
	all := make([]*routes, processes)
	for i := range all {
		all[i] = newRoutes()
		run(t, open(t, natstest.Connect(t, srv), deploy.Config{}), all[i])
	}
	s := open(t, natstest.Connect(t, srv), deploy.Config{})
	var versions []string
	took := make([]time.Duration, deploys)
	for n := range deploys {
		d, err := s.Deploy(t.Context(), deploy.Request{Owner: "acme", Name: "w", Bundle: module(n)}, isFine)
		require.NoError(t, err)
		start := time.Now()
		versions = append(versions, d.Worker.Version)
		for _, r := range all {
			r.await(t, "acme/w", versions...)
		}
		took[n] = time.Since(start)
	}
	slices.Sort(took)
	t.Logf("active in %d processes after the store: median %s, slowest %s", processes, took[deploys/2], took[deploys-1])
}
