package resources_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/resources"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// all is one resource of every kind, with settings that the server completes.
func all() []resources.Resource {
	return []resources.Resource{
		{Stream: &jetstream.StreamConfig{
			Name: "S", Subjects: []string{"s.*"}, Retention: jetstream.WorkQueuePolicy, MaxBytes: 1 << 20, Discard: jetstream.DiscardNew,
			SubjectTransform: &jetstream.SubjectTransformConfig{Source: "s.*", Destination: "t.{{wildcard(1)}}"},
		}},
		{Stream: &jetstream.StreamConfig{Name: "TICKS", Subjects: []string{"ticks.*"}, AllowMsgSchedules: true, AllowMsgTTL: true}},
		{Consumer: &jetstream.ConsumerConfig{Durable: "c", FilterSubject: "t.*", AckPolicy: jetstream.AckExplicitPolicy, AckWait: time.Second, Replicas: 1}, Of: "S"},
		{Bucket: &jetstream.KeyValueConfig{Bucket: "B", History: 3, TTL: time.Hour, LimitMarkerTTL: time.Minute}},
		{Objects: &jetstream.ObjectStoreConfig{Bucket: "O"}},
	}
}

func open(t *testing.T) (*nats.Conn, *resources.Reconciler) {
	t.Helper()
	nc := natstest.Connect(t, natstest.Start(t))
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	return nc, &resources.Reconciler{JS: js}
}

func look(t *testing.T, k *resources.Reconciler, a resources.Resource) resources.Finding {
	t.Helper()
	f, err := resources.Look(t.Context(), k.JS, a)
	require.NoError(t, err)
	return f
}

func TestWhatIsMadeIsAsItShouldBeAndStaysSo(t *testing.T) {
	t.Parallel()
	nc, k := open(t)
	for _, a := range all() {
		require.True(t, look(t, k, a).Missing, a)
	}
	for _, a := range all() {
		require.NoError(t, k.Reconcile(t.Context(), a))
		f := look(t, k, a)
		require.False(t, f.Missing, a)
		require.Empty(t, f.Drift, a)
		require.Equal(t, resources.Level, f.Level, a)
	}
	updates, err := nc.SubscribeSync("$JS.API.STREAM.UPDATE.*")
	require.NoError(t, err)
	for _, a := range all() {
		require.NoError(t, k.Reconcile(t.Context(), a))
	}
	require.NoError(t, nc.Flush())
	n, _, err := updates.Pending()
	require.NoError(t, err)
	require.Zero(t, n, "nothing to update")
}

// Every change that the server allows is made, and what operators choose stays.
func TestDriftIsUpdated(t *testing.T) {
	t.Parallel()
	_, k := open(t)
	for _, a := range all() {
		require.NoError(t, k.Reconcile(t.Context(), a))
	}
	_, err := k.JS.UpdateStream(t.Context(), jetstream.StreamConfig{
		Name: "S", Subjects: []string{"s.*", "u"}, Retention: jetstream.WorkQueuePolicy, AllowRollup: true, MaxMsgs: 7, Compression: jetstream.S2Compression,
		SubjectTransform: &jetstream.SubjectTransformConfig{Source: "s.*", Destination: "t.{{wildcard(1)}}"},
	})
	require.NoError(t, err)
	var names []string
	for _, d := range look(t, k, all()[0]).Drift {
		names = append(names, d.Field)
	}
	require.Equal(t, []string{"allow_rollup_hdrs", "discard", "max_bytes", "max_msgs", "subjects", "metadata.pinwheel.assets"}, names)
	require.NoError(t, k.Reconcile(t.Context(), all()[0]))
	f := look(t, k, all()[0])
	require.Empty(t, f.Drift)
	require.Equal(t, jetstream.S2Compression, f.Stream.Config.Compression, "the operator's choice")

	changed := all()
	changed[0].Stream.MaxBytes *= 2
	changed[2].Consumer.AckWait = time.Minute
	changed[3].Bucket.TTL = 2 * time.Hour
	changed[4].Objects.Description = "new"
	for i, a := range changed {
		if i == 1 {
			continue
		}
		require.Len(t, look(t, k, a).Drift, 1, a)
		repair := *k
		repair.OnlyMissing = true
		require.NoError(t, repair.Reconcile(t.Context(), a))
		require.Len(t, look(t, k, a).Drift, 1, "a process that only repairs reverts nothing: %s", a)
		require.NoError(t, k.Reconcile(t.Context(), a))
		require.Empty(t, look(t, k, a).Drift, a)
	}
	require.Equal(t, "ack_wait is 1m0s and should be 1s", look(t, k, all()[2]).Drift[0].String())
}

// What a newer binary created stays as it is.
func TestNewerResourcesAreLeftAlone(t *testing.T) {
	t.Parallel()
	_, k := open(t)
	future := map[string]string{resources.LevelKey: "99"}
	_, err := k.JS.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s.*", "u.*"}, Retention: jetstream.WorkQueuePolicy, Metadata: future})
	require.NoError(t, err)
	_, err = k.JS.CreateConsumer(t.Context(), "S", jetstream.ConsumerConfig{Durable: "c", AckPolicy: jetstream.AckExplicitPolicy, AckWait: time.Hour, Metadata: future})
	require.NoError(t, err)
	_, err = k.JS.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "B", History: 9, Metadata: future})
	require.NoError(t, err)
	_, err = k.JS.CreateObjectStore(t.Context(), jetstream.ObjectStoreConfig{Bucket: "O", TTL: time.Hour, Metadata: future})
	require.NoError(t, err)
	for i, a := range all() {
		if i == 1 {
			continue
		}
		before := look(t, k, a)
		require.True(t, before.Newer(), a)
		require.NotEmpty(t, before.Drift, a)
		require.NoError(t, k.Reconcile(t.Context(), a))
		require.Equal(t, before.Drift, look(t, k, a).Drift, a)
	}
}

func TestWhatCannotBeChangedInPlaceIsRefused(t *testing.T) {
	t.Parallel()
	_, k := open(t)
	_, err := k.JS.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s.*"}, Storage: jetstream.MemoryStorage, AllowMsgTTL: true})
	require.NoError(t, err)
	err = k.Reconcile(t.Context(), all()[0])
	var immutable *resources.ImmutableError
	require.ErrorAs(t, err, &immutable)
	require.ErrorContains(t, err, "stream S: allow_msg_ttl is true and should be not set, retention is limits and should be workqueue, storage is memory and should be file; JetStream cannot change that in place")
	repair := *k
	repair.OnlyMissing = true
	require.NoError(t, repair.Reconcile(t.Context(), all()[0]))
	three := all()[4]
	three.Objects.Replicas = 3
	require.ErrorContains(t, k.Reconcile(t.Context(), three), "replicas", "one server cannot keep three copies")
}

// A stream of a fleet with another prefix stays as it is.
func TestStreamsOfAnotherPrefixAreLeftAlone(t *testing.T) {
	t.Parallel()
	_, k := open(t)
	for _, level := range []string{"", "1", "77"} {
		have := jetstream.StreamConfig{Name: "S" + level, Subjects: []string{"blue.events" + level + ".*"}}
		if level != "" {
			have.Metadata = map[string]string{resources.LevelKey: level}
		}
		_, err := k.JS.CreateStream(t.Context(), have)
		require.NoError(t, err)
		want := jetstream.StreamConfig{Name: have.Name, Subjects: []string{"red.events" + level + ".*"}, MaxBytes: 1 << 20}
		for _, onlyMissing := range []bool{false, true} {
			k.OnlyMissing = onlyMissing
			var foreign *resources.PrefixError
			require.ErrorAs(t, k.Reconcile(t.Context(), resources.Resource{Stream: &want}), &foreign)
			require.Equal(t, resources.PrefixError{Stream: have.Name, Have: "blue", Want: "red"}, *foreign)
		}
		require.Equal(t, foreignOf(t, k, want), look(t, k, resources.Resource{Stream: &want}).Foreign)
		s, err := k.JS.Stream(t.Context(), have.Name)
		require.NoError(t, err)
		require.Equal(t, have.Subjects, s.CachedInfo().Config.Subjects)
	}
	k.OnlyMissing = false
	// A stream with more subjects than it should have is updated.
	_, err := k.JS.CreateStream(t.Context(), jetstream.StreamConfig{Name: "T", Subjects: []string{"old.>", "red.t.*"}})
	require.NoError(t, err)
	want := jetstream.StreamConfig{Name: "T", Subjects: []string{"red.t.*"}}
	require.NoError(t, resources.CheckPrefix(t.Context(), k.JS, []resources.Resource{{Stream: &want}}))
	require.NoError(t, k.Reconcile(t.Context(), resources.Resource{Stream: &want}))
}

func foreignOf(t *testing.T, k *resources.Reconciler, want jetstream.StreamConfig) error {
	t.Helper()
	return resources.CheckPrefix(t.Context(), k.JS, []resources.Resource{{Bucket: &jetstream.KeyValueConfig{Bucket: "B"}}, {Stream: &want}})
}
