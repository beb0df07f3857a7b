package deploy_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/env/secrets"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

func openSecrets(t *testing.T) (*deploy.Secrets, jetstream.JetStream) {
	t.Helper()
	js, err := jetstream.New(natstest.Connect(t, natstest.Start(t)))
	require.NoError(t, err)
	s, err := deploy.OpenSecrets(t.Context(), js, deploy.Config{CheckEvery: 10 * time.Millisecond})
	require.NoError(t, err)
	return s, js
}

func secretName(owner, worker, name string) secrets.Name {
	return secrets.Name{Owner: owner, Worker: worker, Name: name}
}

func TestSecretsAreStored(t *testing.T) {
	t.Parallel()
	s, js := openSecrets(t)
	put := func(n secrets.Name, text string) {
		t.Helper()
		require.NoError(t, s.Put(t.Context(), n, []byte(text)))
	}
	put(secretName("acme", "shop", "A"), "old")
	put(secretName("acme", "shop", "A"), "new")
	put(secretName("acme", "", "B"), "b")
	put(secretName("beta", "shop", "A"), "beta")
	list, err := s.List(t.Context(), "acme")
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, []string{"acme.=.B", "acme.shop.A"}, []string{list[0].Key(), list[1].Key()})
	require.Equal(t, "new", string(list[1].Sealed))
	list, err = s.List(t.Context(), "")
	require.NoError(t, err)
	require.Len(t, list, 3)
	stream, err := js.Stream(t.Context(), "KV_"+deploy.BucketSecrets)
	require.NoError(t, err)
	require.EqualValues(t, 3, stream.CachedInfo().State.Msgs, "no old value stays")

	missing, err := s.Missing(t.Context(), "acme", "shop", []string{"A", "B", "C"})
	require.NoError(t, err)
	require.Equal(t, []string{"C"}, missing)
	missing, err = s.Missing(t.Context(), "acme", "other", []string{"A", "B"})
	require.NoError(t, err)
	require.Equal(t, []string{"A"}, missing)

	replaced, err := s.Replace(t.Context(), list[0], []byte("rotated"))
	require.NoError(t, err)
	require.True(t, replaced)
	replaced, err = s.Replace(t.Context(), list[0], []byte("rotated"))
	require.NoError(t, err)
	require.False(t, replaced, "it was changed meanwhile")

	require.NoError(t, s.Remove(t.Context(), secretName("acme", "shop", "A")))
	require.ErrorIs(t, s.Remove(t.Context(), secretName("acme", "shop", "A")), deploy.ErrNoSecret)
	list, err = s.List(t.Context(), "acme")
	require.NoError(t, err)
	require.Len(t, list, 1)

	require.ErrorContains(t, s.Put(t.Context(), secretName("acme", "*", "A"), nil), `worker "*"`)
	require.ErrorContains(t, s.Put(t.Context(), secretName("acme", "w", "A"), make([]byte, secrets.MaxSealed+1)),
		"at most 131072 are allowed")
	require.NoError(t, s.Put(t.Context(), secretName("acme", "w", "A"), make([]byte, secrets.MaxSealed)),
		"the server takes the largest")
	for i := range deploy.MostSecrets {
		put(secretName("many", "w", fmt.Sprint("N", i)), "x")
	}
	require.ErrorContains(t, s.Put(t.Context(), secretName("many", "w", "MORE"), []byte("x")),
		"many/w has 128 secrets, and at most 128 are allowed")
	put(secretName("many", "w", "N0"), "again")
	put(secretName("many", "v", "N0"), "another worker's")
}

// noted notes what a watch reports.
type noted struct {
	mu    sync.Mutex
	lines []string
}

func (n *noted) add(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, fmt.Sprintf(format, args...))
}

func (n *noted) Stored(name secrets.Name, sealed []byte) { n.add("%s=%s", name.Key(), sealed) }
func (n *noted) Removed(name secrets.Name)               { n.add("-%s", name.Key()) }
func (n *noted) Settled()                                { n.add("settled") }

func (n *noted) has(line string) func() bool {
	return func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		return slices.Contains(n.lines, line)
	}
}

// A watch reports what is there and each change. A bucket that is lost removes nothing.
func TestSecretsAreWatched(t *testing.T) {
	t.Parallel()
	s, js := openSecrets(t)
	require.NoError(t, s.Put(t.Context(), secretName("acme", "w", "A"), []byte("1")))
	require.NoError(t, s.Put(t.Context(), secretName("acme", "w", "B"), []byte("1")))
	n := &noted{}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var watch sync.WaitGroup
	watch.Go(func() { s.Watch(ctx, n) })
	defer watch.Wait()
	defer cancel()
	require.Eventually(t, n.has("settled"), time.Minute, time.Millisecond)
	require.Equal(t, []string{"acme.w.A=1", "acme.w.B=1", "settled"}, n.lines)
	require.NoError(t, s.Put(t.Context(), secretName("acme", "w", "A"), []byte("2")))
	require.Eventually(t, n.has("acme.w.A=2"), time.Minute, time.Millisecond)
	require.NoError(t, s.Remove(t.Context(), secretName("acme", "w", "A")))
	require.Eventually(t, n.has("-acme.w.A"), time.Minute, time.Millisecond)
	kv, err := js.KeyValue(t.Context(), deploy.BucketSecrets)
	require.NoError(t, err)
	_, err = kv.PutString(t.Context(), "not-a-secret", "x")
	require.NoError(t, err)

	require.NoError(t, js.DeleteKeyValue(t.Context(), deploy.BucketSecrets))
	_, err = deploy.OpenSecrets(t.Context(), js, deploy.Config{})
	require.NoError(t, err)
	require.NoError(t, s.Put(t.Context(), secretName("acme", "w", "C"), []byte("3")))
	require.Eventually(t, n.has("acme.w.C=3"), time.Minute, time.Millisecond)
	require.False(t, n.has("-acme.w.B")(), "no one removed it")
}

func TestDeployNeedsTheSecretsThatAManifestNames(t *testing.T) {
	t.Parallel()
	s, js := openSecrets(t)
	store, err := deploy.Open(t.Context(), js, deploy.Config{})
	require.NoError(t, err)
	b := module(1)
	b.Spec = workers.Spec{Secrets: []string{"B", "A"}}
	req := deploy.Request{Owner: "acme", Name: "w", Bundle: b, Secrets: s}
	_, err = store.Deploy(t.Context(), req, isFine)
	var missing *deploy.MissingSecretsError
	require.ErrorAs(t, err, &missing)
	require.Equal(t, []string{"B", "A"}, missing.Names)
	require.NoError(t, s.Put(t.Context(), secretName("acme", "w", "A"), []byte("x")))
	require.NoError(t, s.Put(t.Context(), secretName("acme", "", "B"), []byte("x")))
	d, err := store.Deploy(t.Context(), req, isFine)
	require.NoError(t, err)
	again, err := store.Get(t.Context(), "acme", "w", "")
	require.NoError(t, err)
	require.Equal(t, d.Worker, again)
	users, err := store.SecretUsers(t.Context(), s, secretName("acme", "w", "A"))
	require.NoError(t, err)
	require.Equal(t, []string{"acme/w"}, users)
	require.NoError(t, s.Put(t.Context(), secretName("acme", "", "A"), []byte("x")))
	for _, n := range []secrets.Name{secretName("acme", "w", "A"), secretName("acme", "", "A"),
		secretName("acme", "v", "B"), secretName("acme", "w", "C")} {
		users, err := store.SecretUsers(t.Context(), s, n)
		require.NoError(t, err)
		require.Empty(t, users, n)
	}

	// Older processes must not run it without its secrets: they skip format 2.
	kv, err := js.KeyValue(t.Context(), deploy.DefaultBucket)
	require.NoError(t, err)
	e, err := kv.Get(t.Context(), "acme.w")
	require.NoError(t, err)
	require.Contains(t, string(e.Value()), `{"format":2,`)
	sorted := *b
	sorted.Secrets = []string{"A", "B"}
	hash, err := sorted.Hash()
	require.NoError(t, err)
	require.Equal(t, d.Worker.Hash, hash, "the order says nothing")
}

func TestVarsThatLookLikeSecretsAreRefused(t *testing.T) {
	t.Parallel()
	_, err := newStore(t, deploy.Config{}).Deploy(t.Context(), deploy.Request{
		Owner: "acme", Name: "w", Bundle: module(1), Bindings: workers.Bindings{Vars: map[string]string{"API_KEY": "s3cret"}},
	}, isFine)
	require.ErrorContains(t, err, "vars.API_KEY looks like a secret")
}
