package deploy_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/internal/env/secrets"
)

// An owner has so many secrets, of so many bytes, for workers that exist and a few that do not.
func TestSecretsOfAnOwnerAreBounded(t *testing.T) {
	t.Parallel()
	s, js := openSecrets(t)
	store, err := deploy.Open(t.Context(), js, deploy.Config{})
	require.NoError(t, err)
	var quota *deploy.QuotaError
	refused := func(n secrets.Name, size int, want string) {
		t.Helper()
		err := s.Put(t.Context(), n, make([]byte, size))
		require.ErrorAs(t, err, &quota)
		require.ErrorContains(t, err, want)
	}
	for i := range 8 {
		require.NoError(t, s.Put(t.Context(), secretName("acme", fmt.Sprint("w", i), "A"), []byte("x")))
	}
	refused(secretName("acme", "w8", "A"), 1, "there is no worker acme/w8, and 8 others of owner acme have secrets and are not deployed either")
	require.NoError(t, s.Put(t.Context(), secretName("acme", "w7", "B"), []byte("x")), "its secrets wait already")
	require.NoError(t, s.Put(t.Context(), secretName("acme", "", "B"), []byte("x")), "it is for all workers")
	require.NoError(t, s.Put(t.Context(), secretName("beta", "w8", "A"), []byte("x")), "another owner's")
	_, err = store.Deploy(t.Context(), deploy.Request{Owner: "acme", Name: "w8", Bundle: module(1)}, isFine)
	require.NoError(t, err)
	require.NoError(t, s.Put(t.Context(), secretName("acme", "w8", "A"), []byte("x")))

	// A replacement counts once, and may always be smaller.
	n := 0
	for ; ; n++ {
		if err = s.Put(t.Context(), secretName("large", "", fmt.Sprint("N", n)),
			make([]byte, secrets.MaxSealed)); err != nil {
			break
		}
	}
	require.ErrorAs(t, err, &quota)
	require.ErrorContains(t, err, "the secrets of owner large would have")
	require.Equal(t, deploy.MostOwnerSecretBytes/secrets.MaxSealed, n)
	require.NoError(t, s.Put(t.Context(), secretName("large", "", "N0"), make([]byte, secrets.MaxSealed)))
	require.NoError(t, s.Put(t.Context(), secretName("large", "", "N0"), []byte("x")))
	require.NoError(t, s.Remove(t.Context(), secretName("large", "", "N1")))
	require.NoError(t, s.Put(t.Context(), secretName("large", "", "N2"), make([]byte, secrets.MaxSealed)))
	require.NoError(t, s.Put(t.Context(), secretName("large", "", "N1"), make([]byte, secrets.MaxSealed)))
}

// The bounds hold, however many processes store at once.
func TestSecretsStoredAtOnceAreBounded(t *testing.T) {
	t.Parallel()
	s, js := openSecrets(t)
	other, err := deploy.OpenSecrets(t.Context(), js, deploy.Config{})
	require.NoError(t, err)
	var all sync.WaitGroup
	for i := range 48 {
		all.Go(func() {
			_ = []*deploy.Secrets{s, other}[i%2].Put(t.Context(), secretName("acme", "", fmt.Sprint("N", i)),
				make([]byte, secrets.MaxSealed))
		})
	}
	all.Wait()
	list, err := s.List(t.Context(), "acme")
	require.NoError(t, err)
	require.NotEmpty(t, list)
	require.LessOrEqual(t, len(list)*secrets.MaxSealed, deploy.MostOwnerSecretBytes)
}

// However many owners fill the bucket, another one has room for a secret.
func TestBucketOfSecretsHasRoomForOthers(t *testing.T) {
	t.Parallel()
	s, _ := openSecrets(t)
	for owner := range 12 { // 48 MiB, if the bucket took them
		for i := range 32 {
			if s.Put(t.Context(), secretName(fmt.Sprint("o", owner), "", fmt.Sprint("N", i)),
				make([]byte, secrets.MaxSealed)) != nil {
				break
			}
		}
	}
	require.NoError(t, s.Put(t.Context(), secretName("good", "", "A"), make([]byte, 1024)))
}

// A new bucket has a bound. That of an earlier release keeps what it has: nothing that starts takes room away.
func TestBucketOfSecretsIsBounded(t *testing.T) {
	t.Parallel()
	_, js := openSecrets(t)
	most := func() int64 {
		t.Helper()
		stream, err := js.Stream(t.Context(), "KV_"+deploy.BucketSecrets)
		require.NoError(t, err)
		return stream.CachedInfo().Config.MaxBytes
	}
	require.EqualValues(t, 32<<20, most())
	require.NoError(t, js.DeleteKeyValue(t.Context(), deploy.BucketSecrets))
	_, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: deploy.BucketSecrets})
	require.NoError(t, err)
	_, err = deploy.OpenSecrets(t.Context(), js, deploy.Config{})
	require.NoError(t, err)
	require.EqualValues(t, -1, most())
}

// Names of removed secrets are free again after a time. No earlier ciphertext comes back.
func TestNamesOfRemovedSecretsAreFreed(t *testing.T) {
	t.Parallel()
	s, js := openSecrets(t)
	names := deploy.ForgetRemovedAfter(s, time.Hour)
	old := secretName("acme", "", "N0")
	require.NoError(t, s.Put(t.Context(), old, []byte("old")))
	list, err := s.List(t.Context(), "acme")
	require.NoError(t, err)
	require.NoError(t, s.Remove(t.Context(), old))
	for i := 1; i < names; i++ { // what the removals of so many more leave
		_, err := js.PublishMsgAsync(&nats.Msg{Subject: fmt.Sprint("$KV."+deploy.BucketSecrets+".acme.=.N", i),
			Header: nats.Header{"KV-Operation": {"DEL"}}})
		require.NoError(t, err)
	}
	<-js.PublishAsyncComplete()
	var quota *deploy.QuotaError
	err = s.Put(t.Context(), secretName("acme", "", "NEW"), []byte("x"))
	require.ErrorAs(t, err, &quota)
	require.ErrorContains(t, err, "with those that were removed less than 1h0m0s ago")
	require.NoError(t, s.Put(t.Context(), secretName("acme", "", "N1"), []byte("x")), "a name that was used")

	deploy.ForgetRemovedAfter(s, 0)
	require.NoError(t, s.Put(t.Context(), secretName("acme", "", "NEW"), []byte("x")))
	replaced, err := s.Replace(t.Context(), list[0], []byte("again"))
	require.NoError(t, err)
	require.False(t, replaced, "it was removed")
	list, err = s.List(t.Context(), "acme")
	require.NoError(t, err)
	require.Len(t, list, 2)
	for i, name := range []string{"N1", "NEW"} {
		require.Equal(t, name, list[i].Name.Name)
	}
	stream, err := js.Stream(t.Context(), "KV_"+deploy.BucketSecrets)
	require.NoError(t, err)
	require.Less(t, stream.CachedInfo().State.NumSubjects, uint64(names))
}
