package assets_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/assets"
	"github.com/pinwheel-run/pinwheel/internal/natstest"
)

// all is one asset of every kind, with settings for which the server chooses something too.
func all() []assets.Asset {
	return []assets.Asset{
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

func open(t *testing.T) (*nats.Conn, *assets.Keeper) {
	t.Helper()
	nc := natstest.Connect(t, natstest.Start(t))
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	return nc, &assets.Keeper{JS: js}
}

func look(t *testing.T, k *assets.Keeper, a assets.Asset) assets.Finding {
	t.Helper()
	f, err := assets.Look(t.Context(), k.JS, a)
	require.NoError(t, err)
	return f
}

func TestWhatIsMadeIsAsItShouldBeAndStaysSo(t *testing.T) {
	nc, k := open(t)
	for _, a := range all() {
		require.True(t, look(t, k, a).Missing, a)
	}
	for _, a := range all() {
		require.NoError(t, k.Make(t.Context(), a))
		f := look(t, k, a)
		require.False(t, f.Missing, a)
		require.Empty(t, f.Drift, a)
		require.Equal(t, assets.Level, f.Level, a)
	}
	updates, err := nc.SubscribeSync("$JS.API.STREAM.UPDATE.*")
	require.NoError(t, err)
	for _, a := range all() {
		require.NoError(t, k.Make(t.Context(), a))
	}
	require.NoError(t, nc.Flush())
	n, _, err := updates.Pending()
	require.NoError(t, err)
	require.Zero(t, n, "nothing to update")
}

// Every change that the server allows is made, and nothing of what operators choose is taken back.
func TestDriftIsBroughtForward(t *testing.T) {
	_, k := open(t)
	for _, a := range all() {
		require.NoError(t, k.Make(t.Context(), a))
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
	require.NoError(t, k.Make(t.Context(), all()[0]))
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
		mend := *k
		mend.OnlyMissing = true
		require.NoError(t, mend.Make(t.Context(), a))
		require.Len(t, look(t, k, a).Drift, 1, "one who only mends takes nothing back: %s", a)
		require.NoError(t, k.Make(t.Context(), a))
		require.Empty(t, look(t, k, a).Drift, a)
	}
	require.Equal(t, "ack_wait is 1m0s and should be 1s", look(t, k, all()[2]).Drift[0].String())
}

// What a newer binary has made is left alone, whatever it is.
func TestNewerAssetsAreLeftAlone(t *testing.T) {
	_, k := open(t)
	future := map[string]string{assets.LevelKey: "99"}
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
		require.NoError(t, k.Make(t.Context(), a))
		require.Equal(t, before.Drift, look(t, k, a).Drift, a)
	}
}

func TestWhatCannotBeChangedInPlaceIsRefused(t *testing.T) {
	_, k := open(t)
	_, err := k.JS.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s.*"}, Storage: jetstream.MemoryStorage, AllowMsgTTL: true})
	require.NoError(t, err)
	err = k.Make(t.Context(), all()[0])
	var frozen *assets.FrozenError
	require.ErrorAs(t, err, &frozen)
	require.ErrorContains(t, err, "stream S: allow_msg_ttl is true and should be not set, retention is limits and should be workqueue, storage is memory and should be file; JetStream cannot change that in place")
	mend := *k
	mend.OnlyMissing = true
	require.NoError(t, mend.Make(t.Context(), all()[0]))
	three := all()[4]
	three.Objects.Replicas = 3
	require.ErrorContains(t, k.Make(t.Context(), three), "replicas", "one server cannot keep three copies")
}

// A stream of a fleet of another prefix stays as it is, whoever made it.
func TestStreamsOfAnotherPrefixAreLeftAlone(t *testing.T) {
	_, k := open(t)
	for _, level := range []string{"", "1", "77"} {
		have := jetstream.StreamConfig{Name: "S" + level, Subjects: []string{"blue.events" + level + ".*"}}
		if level != "" {
			have.Metadata = map[string]string{assets.LevelKey: level}
		}
		_, err := k.JS.CreateStream(t.Context(), have)
		require.NoError(t, err)
		want := jetstream.StreamConfig{Name: have.Name, Subjects: []string{"red.events" + level + ".*"}, MaxBytes: 1 << 20}
		for _, onlyMissing := range []bool{false, true} {
			k.OnlyMissing = onlyMissing
			var foreign *assets.PrefixError
			require.ErrorAs(t, k.Make(t.Context(), assets.Asset{Stream: &want}), &foreign)
			require.Equal(t, assets.PrefixError{Stream: have.Name, Have: "blue", Want: "red"}, *foreign)
		}
		require.Equal(t, foreignOf(t, k, want), look(t, k, assets.Asset{Stream: &want}).Foreign)
		s, err := k.JS.Stream(t.Context(), have.Name)
		require.NoError(t, err)
		require.Equal(t, have.Subjects, s.CachedInfo().Config.Subjects)
	}
	k.OnlyMissing = false
	// One that has more than it should is brought forward as ever.
	_, err := k.JS.CreateStream(t.Context(), jetstream.StreamConfig{Name: "T", Subjects: []string{"old.>", "red.t.*"}})
	require.NoError(t, err)
	want := jetstream.StreamConfig{Name: "T", Subjects: []string{"red.t.*"}}
	require.NoError(t, assets.CheckPrefix(t.Context(), k.JS, []assets.Asset{{Stream: &want}}))
	require.NoError(t, k.Make(t.Context(), assets.Asset{Stream: &want}))
}

func foreignOf(t *testing.T, k *assets.Keeper, want jetstream.StreamConfig) error {
	t.Helper()
	return assets.CheckPrefix(t.Context(), k.JS, []assets.Asset{{Bucket: &jetstream.KeyValueConfig{Bucket: "B"}}, {Stream: &want}})
}
