package resources_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// all is one resource of every kind, with settings that the server completes.
func all() []resources.Resource {
	return []resources.Resource{
		{Stream: &jetstream.StreamConfig{
			Name: "S", Subjects: []string{"s.*"}, Retention: jetstream.WorkQueuePolicy, MaxBytes: 1 << 20,
			Discard:          jetstream.DiscardNew,
			SubjectTransform: &jetstream.SubjectTransformConfig{Source: "s.*", Destination: "t.{{wildcard(1)}}"},
		}},
		{Stream: &jetstream.StreamConfig{Name: "TICKS", Subjects: []string{"ticks.*"}, AllowMsgSchedules: true,
			AllowMsgTTL: true}},
		{Consumer: &jetstream.ConsumerConfig{Durable: "c", FilterSubject: "t.*", AckPolicy: jetstream.AckExplicitPolicy,
			AckWait: time.Second, Replicas: 1}, Of: "S"},
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

// A process that starts adds what the engine needs. Whatever may shrink or delete what is stored stays until somebody
// applies it, and what operators choose stays then too.
func TestOnlyWhatLosesNothingIsChangedAtTheStart(t *testing.T) {
	t.Parallel()
	_, k := open(t)
	for _, a := range all() {
		require.NoError(t, k.Reconcile(t.Context(), a))
	}
	_, err := k.JS.UpdateStream(t.Context(), jetstream.StreamConfig{
		Name: "S", Subjects: []string{"old", "u"}, Retention: jetstream.WorkQueuePolicy, AllowRollup: true, MaxMsgs: 7,
		Compression: jetstream.S2Compression,
		Metadata:    map[string]string{"team": "a"},
	})
	require.NoError(t, err)
	fields := func(a resources.Resource) (names []string) {
		for _, d := range look(t, k, a).Drift {
			names = append(names, d.Field)
		}
		return names
	}
	require.Equal(t, []string{"allow_rollup_hdrs", "discard", "max_bytes", "max_msgs", "subjects",
		"metadata.pinwheel.assets", "subject_transform"}, fields(all()[0]))
	require.ErrorContains(t, k.Reconcile(t.Context(), all()[0]), "belongs to a fleet with PINWHEEL_PREFIX=old")
	_, err = k.JS.UpdateStream(t.Context(), jetstream.StreamConfig{
		Name: "S", Subjects: []string{"s.a", "u"}, Retention: jetstream.WorkQueuePolicy, AllowRollup: true, MaxMsgs: 7,
		Compression: jetstream.S2Compression,
		Metadata:    map[string]string{"team": "a"},
	})
	require.NoError(t, err)
	wider := all()[0]
	wider.Stream.Subjects = []string{"s.b"}
	wider.Stream.SubjectTransform = nil
	require.NoError(t, k.Reconcile(t.Context(), wider))
	f := look(t, k, wider)
	require.Equal(t, []string{"s.a", "u", "s.b"}, f.Stream.Config.Subjects, "subjects are only added")
	require.Equal(t, []string{"discard", "max_bytes", "max_msgs", "subjects"}, fields(wider))
	apply := *k
	apply.Apply = true
	require.NoError(t, apply.Reconcile(t.Context(), all()[0]))
	f = look(t, k, all()[0])
	require.Empty(t, f.Drift)
	require.Equal(t, jetstream.S2Compression, f.Stream.Config.Compression, "the operator's choice")
	require.Equal(t, "a", f.Stream.Config.Metadata["team"], "the operator's choice")
}

// Each field that may shrink or delete is kept, for every kind of resource, in both directions.
func TestSizesAgesAndCopiesAreKept(t *testing.T) {
	t.Parallel()
	_, k := open(t)
	made := all()
	made[1].Stream.AllowMsgSchedules, made[1].Stream.AllowRollup, made[1].Stream.Discard =
		false, true, jetstream.DiscardNew
	made[1].Stream.MaxAge, made[1].Stream.MaxMsgs, made[1].Stream.MaxMsgsPerSubject, made[1].Stream.Duplicates =
		time.Hour, 10, 10, time.Minute
	made[1].Stream.MaxBytes, made[1].Stream.SubjectDeleteMarkerTTL = 2<<20, time.Hour
	for _, a := range made {
		require.NoError(t, k.Reconcile(t.Context(), a))
	}
	again := func(change func(r []resources.Resource)) []resources.Resource {
		r := all()
		*r[1].Stream = *made[1].Stream
		change(r)
		return r
	}
	for name, c := range map[string]struct {
		of     int
		change func(r []resources.Resource)
		lost   string
	}{
		"max_bytes":            {1, func(r []resources.Resource) { r[1].Stream.MaxBytes = 1 << 20 }, ""},
		"max_bytes, more":      {1, func(r []resources.Resource) { r[1].Stream.MaxBytes = 4 << 20 }, ""},
		"max_age":              {1, func(r []resources.Resource) { r[1].Stream.MaxAge = time.Minute }, ""},
		"max_msgs":             {1, func(r []resources.Resource) { r[1].Stream.MaxMsgs = 1 }, ""},
		"max_msgs_per_subject": {1, func(r []resources.Resource) { r[1].Stream.MaxMsgsPerSubject = 1 }, "2 of 3 messages"},
		"duplicate_window": {1, func(r []resources.Resource) { r[1].Stream.Duplicates = time.Second },
			"message ids older than 1s: such a message can be stored again"},
		"discard": {1, func(r []resources.Resource) { r[1].Stream.Discard = jetstream.DiscardOld },
			"when it is full, its oldest messages are removed; until now, new ones are refused"},
		"subjects": {1, func(r []resources.Resource) { r[1].Stream.Subjects = nil },
			"messages to ticks.* are no longer stored"},
		"num_replicas": {1, func(r []resources.Resource) { r[1].Stream.Replicas = 3 }, ""},
		"subject_delete_marker_ttl": {1, func(r []resources.Resource) { r[1].Stream.SubjectDeleteMarkerTTL = time.Minute },
			""},
		"ack_wait": {2, func(r []resources.Resource) { r[2].Consumer.AckWait = 500 * time.Millisecond },
			"processes that run renew leases for 1s: long events may run twice until each has been restarted"},
		"bucket max_age":    {3, func(r []resources.Resource) { r[3].Bucket.TTL = time.Minute }, ""},
		"bucket max_bytes":  {3, func(r []resources.Resource) { r[3].Bucket.MaxBytes = 1 << 20 }, ""},
		"bucket history":    {3, func(r []resources.Resource) { r[3].Bucket.History = 1 }, ""},
		"objects max_bytes": {4, func(r []resources.Resource) { r[4].Objects.MaxBytes = 1 << 20 }, ""},
		"objects max_age":   {4, func(r []resources.Resource) { r[4].Objects.TTL = time.Minute }, ""},
	} {
		want := again(c.change)[c.of]
		if name == "max_msgs_per_subject" {
			for range 3 {
				_, err := k.JS.Publish(t.Context(), "ticks.a", nil)
				require.NoError(t, err)
			}
		}
		drift := look(t, k, want).Drift
		require.Len(t, drift, 1, name)
		require.NoError(t, k.Reconcile(t.Context(), want), name)
		require.Equal(t, drift, look(t, k, want).Drift, name)
		plan, err := resources.Plan(t.Context(), k.JS, []resources.Resource{want}, nil)
		require.NoError(t, err, name)
		require.Equal(t, []resources.Change{{Resource: want, Difference: drift[0], Lost: c.lost}}, plan, name)
	}
}

// What a change would lose is counted: by age, by bytes where the oldest go, and by the shares of owners.
func TestThePlanCountsWhatWouldBeLost(t *testing.T) {
	t.Parallel()
	_, k := open(t)
	have := jetstream.StreamConfig{Name: "L", Subjects: []string{"l.>"}, MaxBytes: 1 << 20, MaxAge: time.Hour}
	require.NoError(t, k.Stream(t.Context(), have))
	for i := range 10 {
		_, err := k.JS.Publish(t.Context(), []string{"l.dead.a", "l.dead.b"}[i%2], make([]byte, 1000))
		require.NoError(t, err)
	}
	lost := func(change func(c *jetstream.StreamConfig), removed resources.Removed) string {
		want := have
		change(&want)
		plan, err := resources.Plan(t.Context(), k.JS, []resources.Resource{{Stream: &want}}, removed)
		require.NoError(t, err)
		require.NotEmpty(t, plan)
		return plan[len(plan)-1].Lost
	}
	require.Equal(t, "6 of 10 messages", lost(func(c *jetstream.StreamConfig) { c.MaxBytes = 4400 }, nil))
	require.Equal(t, "", lost(func(c *jetstream.StreamConfig) { c.MaxBytes = 20_000 }, nil))
	require.Equal(t, "", lost(func(c *jetstream.StreamConfig) { c.MaxAge = 30 * time.Minute }, nil))
	require.Eventually(t, func() bool {
		return lost(func(c *jetstream.StreamConfig) { c.MaxAge = time.Second }, nil) == "10 of 10 messages"
	}, 20*time.Second, 100*time.Millisecond)
	full := func(c *jetstream.StreamConfig) { c.MaxBytes, c.Discard = 4400, jetstream.DiscardNew }
	require.Equal(t, "nothing that is stored; it is full then, and refuses new messages", lost(full, nil))
	require.Equal(t, "7 of 10 messages",
		lost(full, func(stream string, owners map[string]uint64, bytes, limit uint64) (uint64, bool) {
			require.Equal(t, "L", stream)
			require.Equal(t, map[string]uint64{"a": 5, "b": 5}, owners)
			require.EqualValues(t, 4400, limit)
			return 7, true
		}))
}

// What a newer binary created stays as it is.
func TestNewerResourcesAreLeftAlone(t *testing.T) {
	t.Parallel()
	_, k := open(t)
	future := map[string]string{resources.LevelKey: "99"}
	_, err := k.JS.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s.*", "u.*"},
		Retention: jetstream.WorkQueuePolicy, Metadata: future})
	require.NoError(t, err)
	_, err = k.JS.CreateConsumer(t.Context(), "S",
		jetstream.ConsumerConfig{Durable: "c", AckPolicy: jetstream.AckExplicitPolicy, AckWait: time.Hour, Metadata: future})
	require.NoError(t, err)
	_, err = k.JS.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "B", History: 9, Metadata: future})
	require.NoError(t, err)
	_, err = k.JS.CreateObjectStore(t.Context(), jetstream.ObjectStoreConfig{Bucket: "O", TTL: time.Hour,
		Metadata: future})
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
	_, err := k.JS.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s.*"},
		Storage: jetstream.MemoryStorage, AllowMsgTTL: true})
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
	// A stream with more subjects than it should have keeps them.
	_, err := k.JS.CreateStream(t.Context(), jetstream.StreamConfig{Name: "T", Subjects: []string{"old.>", "red.t.*"}})
	require.NoError(t, err)
	want := jetstream.StreamConfig{Name: "T", Subjects: []string{"red.t.*"}}
	require.NoError(t, resources.CheckPrefix(t.Context(), k.JS, []resources.Resource{{Stream: &want}}))
	require.NoError(t, k.Reconcile(t.Context(), resources.Resource{Stream: &want}))
}

func foreignOf(t *testing.T, k *resources.Reconciler, want jetstream.StreamConfig) error {
	t.Helper()
	return resources.CheckPrefix(t.Context(), k.JS, []resources.Resource{{Bucket: &jetstream.KeyValueConfig{Bucket: "B"}},
		{Stream: &want}})
}
