package deploy_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/deploy/bundle"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// checker stands for the isolate that loads a module: what it would say is given.
type checker func(w *workers.Worker) ([]events.Kind, error)

func (c checker) Check(_ context.Context, w *workers.Worker) (workers.Handlers, error) {
	kinds, err := c(w)
	return workers.Handlers{Kinds: kinds}, err
}

// queues says that a module has a queue handler, and handlers of these kinds.
type queues []events.Kind

func (q queues) Check(context.Context, *workers.Worker) (workers.Handlers, error) {
	return workers.Handlers{Kinds: q, Queue: true}, nil
}

// isFine says that every module loads and has a task handler.
var isFine = checker(func(*workers.Worker) ([]events.Kind, error) { return []events.Kind{events.Task}, nil })

func open(t testing.TB, nc *nats.Conn, cfg deploy.Config) *deploy.Store {
	t.Helper()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	s, err := deploy.Open(t.Context(), js, cfg)
	require.NoError(t, err)
	return s
}

func newStore(t testing.TB, cfg deploy.Config) *deploy.Store {
	t.Helper()
	return open(t, natstest.Connect(t, natstest.Start(t)), cfg)
}

// module is a bundle that differs with n.
func write(t testing.TB, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

func module(n int) *bundle.Bundle {
	return &bundle.Bundle{Code: fmt.Sprintf("export default { task: () => %d };", n), File: "w.js",
		SourceMap: []byte(`{"version":3}`)}
}

// bigModule does not fit a record.
func bigModule(t testing.TB, n int) *bundle.Bundle {
	b := module(n)
	noise := make([]byte, 400<<10)
	_, err := rand.Read(noise)
	require.NoError(t, err)
	b.Code += "//" + hex.EncodeToString(noise)
	return b
}

func mustDeploy(t testing.TB, s *deploy.Store, owner, name string, b *bundle.Bundle) *workers.Worker {
	t.Helper()
	d, err := s.Deploy(t.Context(), deploy.Request{Owner: owner, Name: name, Bundle: b}, isFine)
	require.NoError(t, err)
	require.True(t, d.Stored)
	require.Equal(t, d.Worker.Version, d.Deployment.Base())
	return d.Worker
}

func TestDeployFromFile(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewPedanticRegistry()
	s := newStore(t, deploy.Config{Metrics: reg})
	req := deploy.Request{Owner: "acme", Path: "bundle/testdata/hello.ts",
		Bindings: workers.Bindings{Vars: map[string]string{"A": "1"}, Queues: map[string]string{"Q": "other"}}}
	var seen *workers.Worker
	d, err := s.Deploy(t.Context(), req, checker(func(w *workers.Worker) ([]events.Kind, error) {
		seen = w
		return []events.Kind{events.Fetch}, nil
	}))
	require.NoError(t, err)
	require.True(t, d.Stored)
	w := d.Worker
	require.Equal(t, "acme/hello", w.Target())
	require.Regexp(t, `^1-[0-9a-f]{12}$`, w.Version)
	require.Equal(t, w.Version, seen.Version)
	require.Equal(t, w.Code, seen.Code)
	require.Equal(t, []events.Kind{events.Fetch}, w.Handlers)
	require.Equal(t, map[string]string{"A": "1"}, w.Vars)

	again, err := s.Deploy(t.Context(), req, checker(func(*workers.Worker) ([]events.Kind, error) {
		return nil, errors.New("what is active needs no check")
	}))
	require.NoError(t, err)
	require.False(t, again.Stored || again.Changed)
	require.Equal(t, w, again.Worker)

	got, err := s.Get(t.Context(), "acme", "hello", "")
	require.NoError(t, err)
	require.Equal(t, w, got)

	req.Vars["A"] = "2"
	d, err = s.Deploy(t.Context(), req, isFine)
	require.NoError(t, err)
	require.True(t, d.Stored, "the manifest is part of the version")
	require.Equal(t, 2, d.Worker.Number)
	require.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP pinwheel_deploys_total Deploys by this process, by result: changed, unchanged, refused, error.
# TYPE pinwheel_deploys_total counter
pinwheel_deploys_total{result="changed"} 2
pinwheel_deploys_total{result="unchanged"} 1
`), "pinwheel_deploys_total"))
}

func TestDeployRefusesAndStoresNothing(t *testing.T) {
	t.Parallel()
	s := newStore(t, deploy.Config{})
	failure := events.NewFailure(events.ReasonException, "ReferenceError: x is not defined", "    at hello.ts:3:5")
	var refused *deploy.RefusedError
	_, err := s.Deploy(t.Context(), deploy.Request{Owner: "acme", Path: "bundle/testdata/hello.ts"},
		checker(func(*workers.Worker) ([]events.Kind, error) { return nil, fmt.Errorf("wrapped: %w", failure) }))
	require.ErrorAs(t, err, &refused)
	require.EqualError(t, err, "acme/hello is refused: ReferenceError: x is not defined\n    at hello.ts:3:5")

	none := checker(func(*workers.Worker) ([]events.Kind, error) { return nil, nil })
	_, err = s.Deploy(t.Context(), deploy.Request{Owner: "acme", Path: "testdata/nohandler.ts"}, none)
	require.ErrorAs(t, err, &refused)
	require.Equal(t, events.ReasonNoHandler, refused.Failure.Reason)
	require.Equal(t, "    at nohandler.ts:5:1", refused.Failure.Stack)
	_, err = s.Deploy(t.Context(), deploy.Request{Owner: "acme", Path: "bundle/testdata/lib/greet.ts"}, none)
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "    at greet.ts:1:1", refused.Failure.Stack)
	_, err = s.Deploy(t.Context(), deploy.Request{Owner: "acme", Path: "bundle/testdata/syntax.js"}, isFine)
	require.ErrorContains(t, err, "bundle/testdata/syntax.js:2:36: ")

	for want, req := range map[string]deploy.Request{
		`owner "a.b"`:                        {Owner: "a.b", Name: "w", Bundle: module(1)},
		`worker "a/b"`:                       {Owner: "a", Name: "a/b", Bundle: module(1)},
		`worker "my.app": a name is 1 to 64`: {Owner: "a", Bundle: &bundle.Bundle{File: "my.app.js"}},
		"vars.1X is no name in env": {Owner: "a", Name: "w", Bundle: module(1),
			Bindings: workers.Bindings{Vars: map[string]string{"1X": ""}}},
		"vars.X is a queue too": {Owner: "a", Name: "w", Bundle: module(1),
			Bindings: workers.Bindings{Vars: map[string]string{"X": ""}, Queues: map[string]string{"X": "q"}}},
		`queues.X is no worker: worker "o/q"`: {Owner: "a", Name: "w", Bundle: module(1),
			Bindings: workers.Bindings{Queues: map[string]string{"X": "o/q"}}},
		"code and source map must be UTF-8":                      {Owner: "a", Name: "w", Bundle: &bundle.Bundle{File: "w.js", Code: "\xff"}},
		"a worker is a directory, or a file that ends in one of": {Owner: "a", Name: "w"},
	} {
		_, err := s.Deploy(t.Context(), req, isFine)
		require.ErrorContains(t, err, want)
	}
	all, err := s.List(t.Context(), "")
	require.NoError(t, err)
	require.Empty(t, all)
}

func TestVersionsAreKeptAndListed(t *testing.T) {
	t.Parallel()
	s := newStore(t, deploy.Config{})
	const deploys = deploy.History + 2
	for n := range deploys {
		mustDeploy(t, s, "acme", "w", module(n))
	}
	mustDeploy(t, s, "acme", "a", module(1))
	mustDeploy(t, s, "beta", "w", module(1))

	versions, err := s.Versions(t.Context(), "acme", "w")
	require.NoError(t, err)
	require.Len(t, versions, deploy.History)
	require.Equal(t, 3, versions[0].Number)
	require.Equal(t, deploys, versions[deploy.History-1].Number)
	require.Empty(t, versions[9].Code)
	for _, v := range versions {
		w, err := s.Get(t.Context(), "acme", "w", v.Version)
		require.NoError(t, err)
		require.Equal(t, module(v.Number-1).Code, w.Code)
	}
	_, err = s.Get(t.Context(), "acme", "w", "1-000000000000")
	require.ErrorIs(t, err, deploy.ErrNotFound)
	_, err = s.Get(t.Context(), "acme", "nobody", "")
	require.ErrorIs(t, err, deploy.ErrNotFound)
	_, err = s.Get(t.Context(), "acme", "*", "")
	require.ErrorContains(t, err, "a name is 1 to 64")

	targets := func(owner string) (ts []string) {
		ws, err := s.List(t.Context(), owner)
		require.NoError(t, err)
		for _, in := range ws {
			require.Len(t, in.Versions, 1)
			require.Empty(t, in.Active().Code)
			ts = append(ts, in.Target()+" "+in.Deployment.Base()[:2])
		}
		return ts
	}
	require.Equal(t, []string{"acme/a 1-", "acme/w 66", "beta/w 1-"}, targets(""))
	require.Equal(t, []string{"acme/a 1-", "acme/w 66"}, targets("acme"))

	require.NoError(t, s.Remove(t.Context(), "acme", "w"))
	require.Equal(t, []string{"acme/a 1-"}, targets("acme"))
	require.ErrorIs(t, s.Remove(t.Context(), "acme", "w"), deploy.ErrNotFound)
	require.ErrorIs(t, s.Remove(t.Context(), "acme", "x"), deploy.ErrNotFound)
	require.Equal(t, 1, mustDeploy(t, s, "acme", "w", module(99)).Number)
}

func TestLargeBundlesGoToTheObjectStore(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	s := open(t, nc, deploy.Config{})
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	objects, err := js.ObjectStore(t.Context(), deploy.DefaultObjects)
	require.NoError(t, err)
	count := func() int {
		list, err := objects.List(t.Context())
		if errors.Is(err, jetstream.ErrNoObjectsFound) {
			return 0
		}
		require.NoError(t, err)
		return len(list)
	}

	mustDeploy(t, s, "acme", "w", module(0))
	require.Zero(t, count(), "what fits a record stays in it")
	first := bigModule(t, 1)
	w := mustDeploy(t, s, "acme", "w", first)
	got, err := s.Get(t.Context(), "acme", "w", "")
	require.NoError(t, err)
	require.True(t, first.Code == got.Code, "the code comes back whole")
	w.Code, got.Code = "", ""
	require.Equal(t, w, got)

	mustDeploy(t, s, "acme", "w", module(1))
	mustDeploy(t, s, "acme", "w", first) // again: two versions share the object
	for n := range 8 {
		mustDeploy(t, s, "acme", "w", bigModule(t, n))
	}
	require.Equal(t, 9, count(), "the object of version 2 is version 4's too")
	_, err = s.Get(t.Context(), "acme", "w", "4-"+w.Hash[:12])
	require.NoError(t, err)
	for n := range deploy.History - 9 {
		mustDeploy(t, s, "acme", "w", module(100+n))
	}
	require.Equal(t, 9, count(), "version 4 is the oldest one")
	for n := range 3 {
		mustDeploy(t, s, "acme", "w", module(200+n))
	}
	require.Equal(t, 6, count(), "objects go with the versions that have them")
	require.NoError(t, s.Remove(t.Context(), "acme", "w"))
	require.Zero(t, count())
}

func TestALostObjectIsMendedByDeployingAgain(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	s := open(t, nc, deploy.Config{})
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	objects, err := js.ObjectStore(t.Context(), deploy.DefaultObjects)
	require.NoError(t, err)
	b := bigModule(t, 1)
	w := mustDeploy(t, s, "acme", "w", b)
	require.NoError(t, objects.Delete(t.Context(), "acme.w."+w.Hash))
	_, err = s.Get(t.Context(), "acme", "w", "")
	require.ErrorContains(t, err, "bundle of acme/w is damaged")
	require.Equal(t, 2, mustDeploy(t, s, "acme", "w", b).Number)

	// What something else stored there has the bounds of a bundle.
	_, err = objects.PutString(t.Context(), "acme.w."+w.Hash, `{"code":"`+strings.Repeat("x", bundle.MaxBundle+1)+`"}`)
	require.NoError(t, err)
	_, err = s.Get(t.Context(), "acme", "w", "")
	require.ErrorContains(t, err, "bundle of acme/w is damaged: it has 10485761 bytes of code")
}

func TestDeployersDoNotTakeTheSameNumber(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	stores := []*deploy.Store{open(t, natstest.Connect(t, srv), deploy.Config{}),
		open(t, natstest.Connect(t, srv), deploy.Config{})}
	const each = 4
	numbers := make(chan int, len(stores)*each)
	var wg sync.WaitGroup
	for i, s := range stores {
		for n := range each {
			wg.Go(func() {
				d, err := s.Deploy(t.Context(), deploy.Request{Owner: "acme", Name: "w", Bundle: module(i*each + n)}, isFine)
				var superseded *deploy.SupersededError
				if err != nil && !errors.As(err, &superseded) {
					t.Error(err)
					return
				}
				numbers <- d.Worker.Number
			})
		}
	}
	wg.Wait()
	close(numbers)
	var got []int
	for n := range numbers {
		got = append(got, n)
	}
	require.ElementsMatch(t, []int{1, 2, 3, 4, 5, 6, 7, 8}, got)
	in, err := stores[0].Installation(t.Context(), "acme", "w")
	require.NoError(t, err)
	require.Equal(t, 8, in.Active().Number)
	require.Equal(t, 8, in.Deployment.Number)
}

func TestARecordThatCannotBeReadStopsOnlyItsWorker(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	s := open(t, nc, deploy.Config{})
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	kv, err := js.KeyValue(t.Context(), deploy.DefaultBucket)
	require.NoError(t, err)
	old := mustDeploy(t, s, "acme", "w", module(1))
	_, err = kv.PutString(t.Context(), "acme.w", `{"format":7,"anything":"else"}`)
	require.NoError(t, err)

	_, err = s.Deploy(t.Context(), deploy.Request{Owner: "acme", Name: "w", Bundle: module(2)}, isFine)
	require.ErrorContains(t, err, "the newest version cannot be read: worker record has format 7: this process reads 1 to 6")
	w, err := s.Get(t.Context(), "acme", "w", old.Version)
	require.NoError(t, err)
	require.Equal(t, old, w)
	require.NoError(t, s.Remove(t.Context(), "acme", "w"))
	mustDeploy(t, s, "acme", "w", module(2))
}

func TestOpenRefusesAWrongConfig(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]deploy.Config{
		"Replicas is 7: it is 1 to 5":      {Replicas: 7},
		"InlineLimit is -1":                {InlineLimit: -1},
		"CheckEvery is -1ns: it is longer": {CheckEvery: -1},
	} {
		_, err := deploy.Open(t.Context(), nil, cfg)
		require.ErrorContains(t, err, want)
	}
}

// A queue handler takes the tasks of its worker. The record says so in format 2: earlier processes would call task().
func TestQueueHandlers(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	s := open(t, nc, deploy.Config{})
	deployAs := func(name string, b *bundle.Bundle, check deploy.Checker) error {
		_, err := s.Deploy(t.Context(), deploy.Request{Owner: "acme", Name: name, Bundle: b}, check)
		return err
	}
	b := module(1)
	b.Spec.Batch = &workers.Batch{MaxSize: 50}
	require.NoError(t, deployAs("w", b, queues{events.Fetch}))
	got, err := s.Get(t.Context(), "acme", "w", "")
	require.NoError(t, err)
	require.Equal(t, []events.Kind{events.Fetch, events.Task}, got.Handlers)
	require.True(t, got.Queue)
	require.Equal(t, 50, got.Batch.MaxSize)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	kv, err := js.KeyValue(t.Context(), deploy.DefaultBucket)
	require.NoError(t, err)
	entry, err := kv.Get(t.Context(), "acme.w")
	require.NoError(t, err)
	require.Contains(t, string(entry.Value()), `"format":3`)

	var refused *deploy.RefusedError
	require.ErrorAs(t, deployAs("both", module(1), queues{events.Task}), &refused)
	require.Equal(t, "acme/both is refused: the module has a queue handler and a task handler: both take its tasks, so keep one of them\n    at w.js:1:1", refused.Error())
	require.ErrorAs(t, deployAs("none", b, isFine), &refused)
	require.Contains(t, refused.Error(), "the manifest has a batch, and the module has no queue handler")
	require.Contains(t, refused.Error(), "w.js:1:1")
}

// A worker whose manifest names subjects that its owner is not granted is refused, at the place of the subject.
func TestSubjectsThatAreNotGranted(t *testing.T) {
	t.Parallel()
	s := newStore(t, deploy.Config{})
	dir := t.TempDir()
	write(t, dir+"/w.js", "export default { task() {} }")
	write(t, dir+"/w.pinwheel.json", "{\n  \"nats\": {\"BUS\": {\"publish\": [\"a\", \"orders.>\"]}}\n}")
	r := deploy.Request{Owner: "acme", Path: dir + "/w.js", Policy: workers.Policy{NATSPublish: []string{"a", "orders.*"}}}
	_, err := s.Deploy(t.Context(), r, isFine)
	require.ErrorContains(t, err, "w.pinwheel.json:2:37: nats.BUS.publish[1] is orders.>, which the owner is not granted")
	r.Policy.NATSPublish = []string{">"}
	_, err = s.Deploy(t.Context(), r, isFine)
	require.NoError(t, err)
	b := module(1)
	b.NATS = map[string]workers.NATSSubjects{"BUS": {Request: []string{"x"}}}
	_, err = s.Deploy(t.Context(), deploy.Request{Owner: "acme", Name: "v", Bundle: b}, isFine)
	var quota *deploy.QuotaError
	require.ErrorAs(t, err, &quota)
}
