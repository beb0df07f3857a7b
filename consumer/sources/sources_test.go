package sources_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer/sources"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/events/workers/catalog"
	"github.com/pinwheel-run/pinwheel/internal/test/jsapitest"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

const patience = time.Minute

// bed is a fleet without a consumer of events: they stay where the sources store them.
type bed struct {
	*jsapitest.Bed
	t       testing.TB
	catalog catalog.Catalog
	cfg     sources.Config
}

func open(t testing.TB) *bed {
	b := &bed{Bed: jsapitest.Open(t), t: t}
	conn, err := sources.NewConn(b.NC, "")
	require.NoError(t, err)
	b.cfg = sources.Config{Prefix: jsapitest.Prefix, Catalog: &b.catalog, Conns: sources.Conns{"": conn}, Replicas: 1,
		LookEvery: 100 * time.Millisecond}
	return b
}

// process is one process of the fleet.
type process struct {
	*sources.Sources
	end func()
}

func (b *bed) process() *process {
	ctx, cancel := context.WithCancel(context.Background())
	p := &process{Sources: sources.New(b.cfg, b.NC, b.Usage, zerolog.New(zerolog.NewTestWriter(b.t)))}
	var running sync.WaitGroup
	running.Go(func() { p.Run(ctx) })
	p.end = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	b.t.Cleanup(p.end)
	return p
}

// deploy makes a version with these sources the active one.
func (b *bed) deploy(owner, worker string, list ...workers.Source) {
	b.catalog.Install(workers.Only(&workers.Worker{Owner: owner, Name: worker, Version: "1-0123456789ab", Number: 1,
		Spec: workers.Spec{Sources: list}}))
}

func (b *bed) grant(owner string, patterns ...string) {
	b.catalog.SetPolicy(owner, workers.Policy{Consume: patterns})
}

func (b *bed) stream(cfg jetstream.StreamConfig) jetstream.Stream {
	s, err := b.JS.CreateStream(b.t.Context(), cfg)
	require.NoError(b.t, err)
	return s
}

func (b *bed) publish(subject string, n, size int) {
	for i := range n {
		m := &nats.Msg{Subject: subject, Header: nats.Header{"Customer": {strconv.Itoa(i)}, "Source-Stream": {"FORGED"}},
			Data: bytes.Repeat([]byte("x"), size)}
		_, err := b.JS.PublishMsg(b.t.Context(), m)
		require.NoError(b.t, err)
	}
}

// events are those that are stored of a worker.
func (b *bed) events(owner, worker string) (list []*events.Event) {
	s, err := b.JS.Stream(b.t.Context(), events.StreamEvents)
	require.NoError(b.t, err)
	decoder := events.Decoder{Subjects: jsapitest.Prefix}
	for seq := s.CachedInfo().State.FirstSeq; seq <= s.CachedInfo().State.LastSeq; seq++ {
		m, err := s.GetMsg(b.t.Context(), seq)
		if err != nil || !strings.Contains(m.Subject, "."+owner+"."+worker) {
			continue
		}
		e, failure := decoder.Decode(events.Origin{Stream: events.StreamEvents, Subject: m.Subject, Seq: seq},
			events.Header(m.Header), m.Data, m.Time)
		require.True(b.t, e.Sourced)
		require.Equal(b.t, e.Header.Get(events.HeaderSourceFault) != "", failure != nil)
		list = append(list, e)
	}
	return list
}

func (b *bed) count(owner, worker string) int {
	s, err := b.JS.Stream(b.t.Context(), events.StreamEvents)
	require.NoError(b.t, err)
	subject := jsapitest.Prefix.Source(owner, worker)
	info, err := s.Info(b.t.Context(), jetstream.WithSubjectFilter(subject))
	require.NoError(b.t, err)
	return int(info.State.Subjects[subject])
}

func (b *bed) awaits(owner, worker string, n int) {
	b.t.Helper()
	require.Eventually(b.t, func() bool { return b.count(owner, worker) >= n }, patience, 10*time.Millisecond)
}

// sequences are those of the messages whose events are stored, each with the number of events.
func (b *bed) sequences(owner, worker string) map[string]int {
	all := map[string]int{}
	for _, e := range b.events(owner, worker) {
		all[e.Header.Get(events.HeaderSourceSequence)]++
	}
	return all
}

var start = workers.Start{From: workers.StartAll}

// Two processes store each message once, small and large ones, from a stream that keeps its messages and from a work
// queue, and ack it.
func TestEachMessageBecomesAnEvent(t *testing.T) {
	t.Parallel()
	for name, retention := range map[string]jetstream.RetentionPolicy{"limits": jetstream.LimitsPolicy,
		"work queue": jetstream.WorkQueuePolicy} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t)
			s := b.stream(jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}, Retention: retention})
			b.publish("orders.large", 12, 900<<10)
			b.publish("orders.small", 300, 1<<10)
			b.publish("orders.other", 3, 1)
			b.grant("acme", "stream:ORDERS")
			b.deploy("acme", "hello", workers.Source{Stream: "ORDERS", Subjects: []string{"orders.small", "orders.large"},
				Start: start})
			one, other := b.process(), b.process()
			b.awaits("acme", "hello", 312)
			require.Eventually(t, func() bool {
				c, err := s.Consumer(t.Context(), "pinwheel-acme-hello-0")
				return err == nil && c.CachedInfo().NumPending == 0 && c.CachedInfo().NumAckPending == 0
			}, patience, 10*time.Millisecond)
			one.end()
			other.end()
			seen := b.sequences("acme", "hello")
			require.Len(t, seen, 312)
			info, err := s.Info(t.Context())
			require.NoError(t, err)
			if retention == jetstream.WorkQueuePolicy {
				require.EqualValues(t, 3, info.State.Msgs, "all but the other ones are acked")
			} else {
				require.EqualValues(t, 315, info.State.Msgs, "nothing is removed")
			}
			for _, e := range b.events("acme", "hello") {
				seq := e.Header.Get(events.HeaderSourceSequence)
				require.Equal(t, 1, seen[seq], seq)
				require.Equal(t, "ORDERS", e.Header.Get(events.HeaderSourceStream))
				require.Equal(t, fmt.Sprintf("source:ORDERS:%d:%s", info.Created.UnixNano(), seq), e.ID)
				require.NotEmpty(t, e.Header.Get("Customer"))
				want := 1 << 10
				if e.Header.Get(events.HeaderSourceSubject) == "orders.large" {
					want = 900 << 10
				}
				require.Len(t, e.Body, want)
			}
		})
	}
}

// Processes that end and begin at any time leave no gap, and ack nothing that is not stored.
func TestProcessesComeAndGo(t *testing.T) {
	t.Parallel()
	b := open(t)
	s := b.stream(jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"},
		Retention: jetstream.WorkQueuePolicy})
	b.grant("acme", "stream:*")
	b.deploy("acme", "hello", workers.Source{Stream: "ORDERS", Start: start})
	const each, rounds = 150, 8
	for range rounds {
		p := b.process()
		b.publish("orders.a", each, 100)
		p.end()
	}
	last := b.process()
	b.awaits("acme", "hello", each*rounds)
	require.Eventually(t, func() bool {
		info, err := s.Info(t.Context())
		return err == nil && info.State.Msgs == 0
	}, patience, 10*time.Millisecond)
	last.end()
	seen := b.sequences("acme", "hello")
	require.Len(t, seen, each*rounds)
	for seq, n := range seen {
		require.Equal(t, 1, n, "message %s", seq)
	}
}

// A source that is too far ahead of its worker waits, and so does one whose owner has its share. Others do not.
func TestMessagesWaitAtTheirSource(t *testing.T) {
	t.Parallel()
	b := open(t)
	s := b.stream(jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}})
	const all = 6000
	for range all {
		_, err := b.JS.PublishAsync("orders.a", []byte("x"))
		require.NoError(t, err)
	}
	<-b.JS.PublishAsyncComplete()
	b.grant("acme", "stream:*")
	b.grant("beta", "stream:*")
	b.deploy("acme", "hello", workers.Source{Stream: "ORDERS", Start: start})
	b.process()
	b.awaits("acme", "hello", 1500)
	b.deploy("beta", "hello", workers.Source{Stream: "ORDERS", Subjects: []string{"orders.b"}})
	require.Eventually(t, func() bool {
		c, err := s.Consumer(t.Context(), "pinwheel-beta-hello-0")
		return err == nil && c != nil
	}, patience, 10*time.Millisecond)
	b.publish("orders.b", 20, 10)
	b.awaits("beta", "hello", 20)
	require.LessOrEqual(t, b.count("acme", "hello"), 2048, "the others wait at their source")
	stream, err := b.JS.Stream(t.Context(), events.StreamEvents)
	require.NoError(t, err)
	require.Eventually(t, func() bool { // they run
		n := b.count("acme", "hello")
		require.LessOrEqual(t, n, 2048)
		if n > 0 {
			err := stream.Purge(t.Context(), jetstream.WithPurgeSubject(jsapitest.Prefix.Source("acme", "hello")))
			require.NoError(t, err)
			return false
		}
		c, err := s.Consumer(t.Context(), "pinwheel-acme-hello-0")
		return err == nil && c.CachedInfo().NumPending == 0 && c.CachedInfo().AckFloor.Stream >= all
	}, patience, 10*time.Millisecond)

	require.Nil(t, b.Usage.Admit("acme", 40<<20))
	require.True(t, b.Usage.OverShareOf("acme"))
	c, err := s.Consumer(t.Context(), "pinwheel-acme-hello-0")
	require.NoError(t, err)
	before := c.CachedInfo().Delivered.Stream
	for range 20 {
		b.publish("orders.b", 1, 10)
		b.publish("orders.a", 1, 10)
	}
	b.awaits("beta", "hello", 40)
	c, err = s.Consumer(t.Context(), "pinwheel-acme-hello-0")
	require.NoError(t, err)
	require.LessOrEqual(t, c.CachedInfo().AckFloor.Stream, before+1)
	require.Positive(t, c.CachedInfo().NumPending+uint64(c.CachedInfo().NumAckPending), "its messages wait")
}

// The messages of a paused worker wait at their source, and so do those of one that has many events parked.
func TestMessagesAreNotCopiedToTheParkedEvents(t *testing.T) {
	t.Parallel()
	b := open(t)
	s := b.stream(jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}})
	b.grant("other", "stream:*")
	b.deploy("other", "hello", workers.Source{Stream: "ORDERS", Start: start})
	paused := map[string]workers.Pause{"hello": {Since: time.Now()}}
	b.catalog.SetPolicy("acme", workers.Policy{Consume: []string{"stream:*"}, Paused: paused})
	b.deploy("acme", "hello", workers.Source{Stream: "ORDERS", Start: start})
	p := b.process()
	b.publish("orders.a", 20, 10)
	b.awaits("other", "hello", 20)
	require.Eventually(t, func() bool {
		c, err := s.Consumer(t.Context(), "pinwheel-acme-hello-0")
		return err == nil && c.CachedInfo().NumPending == 20
	}, patience, 10*time.Millisecond)
	require.Zero(t, b.count("acme", "hello"))
	b.grant("acme", "stream:*")
	p.Changed()
	b.awaits("acme", "hello", 20)

	parked := jsapitest.Prefix.Parked(&events.Event{Kind: events.Task, Owner: "slow", Worker: "hello"})
	for i := range 2048 {
		subject := parked
		if i%2 == 0 {
			subject = events.Held(parked)
		}
		_, err := b.JS.PublishAsync(subject, nil)
		require.NoError(t, err)
	}
	<-b.JS.PublishAsyncComplete()
	b.grant("slow", "stream:*")
	b.deploy("slow", "hello", workers.Source{Stream: "ORDERS", Start: start})
	b.publish("orders.a", 20, 10)
	p.Changed()
	b.awaits("other", "hello", 40)
	require.Eventually(t, func() bool {
		c, err := s.Consumer(t.Context(), "pinwheel-slow-hello-0")
		return err == nil && c.CachedInfo().NumPending == 40
	}, patience, 10*time.Millisecond)
	require.Zero(t, b.count("slow", "hello"))
	stream, err := b.JS.Stream(t.Context(), events.StreamParked)
	require.NoError(t, err)
	require.NoError(t, stream.Purge(t.Context(), jetstream.WithPurgeSubject(parked)))
	b.awaits("slow", "hello", 40)
}

// Only what the policy grants now is read, and a consumer of somebody else is left alone.
func TestHostileSources(t *testing.T) {
	t.Parallel()
	b := open(t)
	s := b.stream(jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}})
	theirs, err := s.CreateConsumer(t.Context(), jetstream.ConsumerConfig{Durable: "pinwheel-evil-hello-0",
		AckPolicy: jetstream.AckExplicitPolicy, Metadata: map[string]string{"pinwheel.worker": "evil/hello"}})
	require.NoError(t, err)
	b.publish("orders.a", 5, 10)
	b.grant("evil", "stream:*", "subject:>")
	b.grant("a", "stream:ORDERS")
	b.grant("a-b", "stream:ORDERS")
	fleets := []workers.Source{{Stream: "PINWHEEL_EVENTS", Start: start}, {KV: "PINWHEEL_OWNERS", Start: start},
		{Subject: "pinwheel.>"}, {Subject: "*.logs.>"}}
	b.deploy("evil", "thief", fleets...) // the deploy would refuse it
	b.deploy("evil", "hello", workers.Source{Stream: "ORDERS", Start: start})
	b.deploy("a", "b-c", workers.Source{Stream: "ORDERS", Start: start})
	b.deploy("a-b", "c", workers.Source{Stream: "ORDERS", Start: start})
	b.process()
	b.awaits("a", "b-c", 5)
	b.awaits("a-b", "c", 5)
	require.Zero(t, b.count("evil", "thief"))
	require.Zero(t, b.count("evil", "hello"))
	info, err := theirs.Info(t.Context())
	require.NoError(t, err)
	require.Zero(t, info.Delivered.Consumer, "the consumer of somebody else is as it was")

	b.grant("a")
	b.publish("orders.a", 5, 10)
	b.awaits("a-b", "c", 10)
	b.catalog.Remove("evil", "hello")
	require.Equal(t, 5, b.count("a", "b-c"), "what is no longer granted is no longer read")
}

// A source keeps its place when its filters, its number and its consumer change. A consumer goes after the grace.
func TestSourcesKeepTheirPlace(t *testing.T) {
	t.Parallel()
	b := open(t)
	var late sync.Map
	b.cfg.Now = func() time.Time {
		if _, ok := late.Load("now"); ok {
			return time.Now().Add(25 * time.Hour)
		}
		return time.Now()
	}
	s := b.stream(jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}})
	b.stream(jetstream.StreamConfig{Name: "BILLS", Subjects: []string{"bills.>"}})
	b.publish("orders.before", 5, 10)
	b.grant("acme", "stream:*")
	b.deploy("acme", "hello", workers.Source{Stream: "ORDERS"})
	p := b.process()
	has := func(consumer string) func() bool {
		return func() bool {
			_, err := s.Consumer(t.Context(), consumer)
			return err == nil
		}
	}
	require.Eventually(t, has("pinwheel-acme-hello-0"), patience, 10*time.Millisecond)
	b.publish("orders.a", 10, 10)
	b.awaits("acme", "hello", 10)

	b.deploy("acme", "hello", workers.Source{Stream: "BILLS"}, workers.Source{Stream: "ORDERS",
		Subjects: []string{"orders.b"}})
	p.Changed()
	require.Eventually(t, func() bool {
		c, err := s.Consumer(t.Context(), "pinwheel-acme-hello-0")
		return err == nil && c.CachedInfo().Config.FilterSubject == "orders.b"
	}, patience, 10*time.Millisecond)
	b.publish("orders.b", 10, 10)
	b.publish("orders.a", 10, 10)
	b.awaits("acme", "hello", 20)

	require.Eventually(t, func() bool {
		c, err := s.Consumer(t.Context(), "pinwheel-acme-hello-0")
		return err == nil && c.CachedInfo().NumAckPending == 0
	}, patience, 10*time.Millisecond)
	require.NoError(t, s.DeleteConsumer(t.Context(), "pinwheel-acme-hello-0"))
	b.publish("orders.b", 10, 10)
	b.awaits("acme", "hello", 30)
	require.Len(t, b.sequences("acme", "hello"), 30, "none is left out")

	b.catalog.Remove("acme", "hello")
	p.Changed()
	b.publish("orders.b", 10, 10)
	b.deploy("acme", "hello", workers.Source{Stream: "ORDERS", Subjects: []string{"orders.b"}})
	b.awaits("acme", "hello", 40)
	b.catalog.Remove("acme", "hello")
	kv, err := b.JS.KeyValue(t.Context(), sources.BucketSources)
	require.NoError(t, err)
	require.Eventually(t, func() bool { // all records are noted as removed
		p.Changed()
		keys, err := kv.Keys(t.Context())
		require.NoError(t, err)
		for _, key := range keys {
			if e, err := kv.Get(t.Context(), key); err != nil || !bytes.Contains(e.Value(), []byte("removed")) {
				return false
			}
		}
		return true
	}, patience, 10*time.Millisecond)
	require.True(t, has("pinwheel-acme-hello-0")(), "it stays for the grace")
	late.Store("now", true)
	require.Eventually(t, func() bool {
		p.Changed()
		_, err := kv.Keys(t.Context())
		return !has("pinwheel-acme-hello-0")() && err != nil
	}, patience, 10*time.Millisecond)
}

// A source that is as it was keeps its place, although a new one of its stream stands before it.
func TestANewSourceTakesNoOtherPlace(t *testing.T) {
	t.Parallel()
	b := open(t)
	s := b.stream(jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"a.>", "b.>", "c.>"}})
	b.grant("acme", "stream:*")
	of := func(subject string) workers.Source {
		return workers.Source{Stream: "ORDERS", Subjects: []string{subject}}
	}
	b.deploy("acme", "hello", of("a.>"), of("b.>"))
	p := b.process()
	filters := func() (list []string) {
		consumers := s.ListConsumers(t.Context())
		for info := range consumers.Info() {
			list = append(list, info.Name+" "+info.Config.FilterSubject)
		}
		require.NoError(t, consumers.Err())
		slices.Sort(list)
		return list
	}
	name := "pinwheel-acme-hello-"
	require.Eventually(t, func() bool {
		return slices.Equal(filters(), []string{name + "0 a.>", name + "1 b.>"})
	}, patience, 10*time.Millisecond)
	p.end()
	b.publish("b.waits", 5, 10)
	b.deploy("acme", "hello", of("c.>"), of("a.>"), of("b.>"))
	b.process()
	b.awaits("acme", "hello", 5)
	require.Eventually(t, func() bool {
		return slices.Equal(filters(), []string{name + "0 a.>", name + "1 b.>", name + "2 c.>"})
	}, patience, 10*time.Millisecond)
}

// A source of a work queue goes on when its consumer was lost.
func TestAWorkQueueGoesOnWithoutItsConsumer(t *testing.T) {
	t.Parallel()
	b := open(t)
	s := b.stream(jetstream.StreamConfig{Name: "JOBS", Subjects: []string{"jobs.>"}, Retention: jetstream.WorkQueuePolicy})
	b.grant("acme", "stream:*")
	b.deploy("acme", "hello", workers.Source{Stream: "JOBS", Start: start})
	p := b.process()
	b.publish("jobs.a", 10, 10)
	b.awaits("acme", "hello", 10)
	kv, err := b.JS.KeyValue(t.Context(), sources.BucketSources)
	require.NoError(t, err)
	require.Eventually(t, func() bool { // the record says how far it is
		p.Changed()
		e, err := kv.Get(t.Context(), "acme.hello.0")
		return err == nil && bytes.Contains(e.Value(), []byte(`"floor":10`))
	}, patience, 10*time.Millisecond)
	require.NoError(t, s.DeleteConsumer(t.Context(), "pinwheel-acme-hello-0"))
	b.publish("jobs.a", 10, 10)
	b.awaits("acme", "hello", 20)
	require.Len(t, b.sequences("acme", "hello"), 20)
}

// The policy is asked about the source of the active version, not about that of the version before.
func TestAFeedHasTheSourceOfTheActiveVersion(t *testing.T) {
	t.Parallel()
	b := open(t)
	kv, err := b.JS.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "FLAGS"})
	require.NoError(t, err)
	b.grant("acme", "kv:FLAGS:old.>", "kv:FLAGS:new.>")
	b.deploy("acme", "hello", workers.Source{KV: "FLAGS", Keys: []string{"old.>"}, Start: start})
	p := b.process()
	_, err = kv.PutString(t.Context(), "old.a", "on")
	require.NoError(t, err)
	b.awaits("acme", "hello", 1)
	b.deploy("acme", "hello", workers.Source{KV: "FLAGS", Keys: []string{"new.>"}, Start: start})
	p.Changed()
	_, err = kv.PutString(t.Context(), "new.a", "on")
	require.NoError(t, err)
	b.awaits("acme", "hello", 2)
	b.grant("acme", "kv:FLAGS:new.>")
	_, err = kv.PutString(t.Context(), "new.b", "on")
	require.NoError(t, err)
	b.awaits("acme", "hello", 3)
}

// Keys, objects and core subjects start workers.
func TestKeysObjectsAndSubjects(t *testing.T) {
	t.Parallel()
	b := open(t)
	kv, err := b.JS.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "FLAGS", History: 10})
	require.NoError(t, err)
	objects, err := b.JS.CreateObjectStore(t.Context(), jetstream.ObjectStoreConfig{Bucket: "UPLOADS"})
	require.NoError(t, err)
	b.grant("acme", "kv:FLAGS:checkout.>", "objects:UPLOADS", "subject:sensors.>")
	b.deploy("acme", "flags", workers.Source{KV: "FLAGS", Keys: []string{"checkout.>"}, Start: start})
	b.deploy("acme", "uploads", workers.Source{Objects: "UPLOADS", Start: start})
	b.deploy("acme", "sensors", workers.Source{Subject: "sensors.*.temperature"})
	b.process()
	revision, err := kv.PutString(t.Context(), "checkout.new", "on")
	require.NoError(t, err)
	b.awaits("acme", "flags", 1)
	_, err = kv.PutString(t.Context(), "other", "on")
	require.NoError(t, err)
	require.NoError(t, kv.Delete(t.Context(), "checkout.new"))
	b.awaits("acme", "flags", 2)
	require.NoError(t, kv.Purge(t.Context(), "checkout.new"))
	b.awaits("acme", "flags", 3)
	for i, operation := range []string{"put", "delete", "purge"} {
		e := b.events("acme", "flags")[i]
		require.Equal(t, operation, e.Header.Get(events.HeaderSourceOperation))
		require.Equal(t, "checkout.new", e.Header.Get(events.HeaderSourceKey))
		require.Equal(t, "KV_FLAGS", e.Header.Get(events.HeaderSourceStream))
	}
	require.Equal(t, "on", string(b.events("acme", "flags")[0].Body))
	require.Equal(t, strconv.FormatUint(revision, 10),
		b.events("acme", "flags")[0].Header.Get(events.HeaderSourceSequence))

	_, err = objects.PutString(t.Context(), "a.txt", strings.Repeat("x", 300_000))
	require.NoError(t, err)
	b.awaits("acme", "uploads", 1)
	require.NoError(t, objects.Delete(t.Context(), "a.txt"))
	b.awaits("acme", "uploads", 2)
	require.Contains(t, string(b.events("acme", "uploads")[0].Body), `"name":"a.txt"`)
	require.Equal(t, "put", b.events("acme", "uploads")[0].Header.Get(events.HeaderSourceOperation))
	require.Equal(t, "delete", b.events("acme", "uploads")[1].Header.Get(events.HeaderSourceOperation))

	inbox, err := b.NC.SubscribeSync(b.NC.NewInbox())
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		require.NoError(t, b.NC.PublishRequest("sensors.1.temperature", inbox.Subject, []byte("21")))
		return b.count("acme", "sensors") > 0
	}, patience, 10*time.Millisecond)
	e := b.events("acme", "sensors")[0]
	require.Equal(t, "sensors.1.temperature", e.Header.Get(events.HeaderSourceSubject))
	require.Empty(t, e.Header.Get(events.HeaderSourceStream))
	require.NotEmpty(t, e.Header.Get(events.HeaderSourceTime))
	_, err = inbox.NextMsg(time.Millisecond)
	require.ErrorIs(t, err, nats.ErrTimeout, "a publisher's reply subject gets nothing")
}

// A message that cannot be an event is malformed, and does not come again.
func TestMessagesThatCannotBeEvents(t *testing.T) {
	t.Parallel()
	b := open(t)
	s := b.stream(jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}})
	b.grant("acme", "stream:*")
	b.deploy("acme", "hello", workers.Source{Stream: "ORDERS", Start: start})
	_, err := b.JS.Publish(t.Context(), "orders.huge", make([]byte, 1<<20-100))
	require.NoError(t, err)
	_, err = b.JS.PublishMsg(t.Context(), &nats.Msg{Subject: "orders.wide",
		Header: nats.Header{"Long": {strings.Repeat("x", 62<<10)}}})
	require.NoError(t, err)
	b.publish("orders.a", 1, 10)
	b.process()
	b.awaits("acme", "hello", 3)
	list := b.events("acme", "hello")
	require.Contains(t, list[0].Header.Get(events.HeaderSourceFault)+list[1].Header.Get(events.HeaderSourceFault)+
		list[2].Header.Get(events.HeaderSourceFault), "too large for an event")
	require.Eventually(t, func() bool {
		c, err := s.Consumer(t.Context(), "pinwheel-acme-hello-0")
		return err == nil && c.CachedInfo().NumAckPending == 0 && c.CachedInfo().NumPending == 0
	}, patience, 10*time.Millisecond)
}

// A reset says first how many messages come, and they run again, also those that came a moment ago.
func TestSourcesBeginElsewhere(t *testing.T) {
	t.Parallel()
	b := open(t)
	s := b.stream(jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}})
	b.stream(jetstream.StreamConfig{Name: "JOBS", Subjects: []string{"jobs.>"}, Retention: jetstream.WorkQueuePolicy})
	b.publish("orders.a", 10, 10)
	middle := b.now()
	b.publish("orders.a", 7, 10)
	b.publish("orders.b", 3, 10)
	b.grant("acme", "stream:*")
	b.deploy("acme", "hello", workers.Source{Stream: "ORDERS", Subjects: []string{"orders.a"}, Start: start})
	b.deploy("acme", "jobs", workers.Source{Stream: "JOBS", Start: start})
	p := b.process()
	b.awaits("acme", "hello", 17)
	store := sources.Store{Conns: b.cfg.Conns}
	reset := func(to string, dryRun bool) []sources.Progress {
		at, err := sources.ParseStart(to)
		require.NoError(t, err)
		done, err := store.Reset(t.Context(), "acme", "hello", -1, at, dryRun)
		require.NoError(t, err)
		require.Len(t, done, 1)
		return done
	}
	require.EqualValues(t, 7, reset(middle, true)[0].Pending)
	require.EqualValues(t, 17, reset("all", true)[0].Pending)
	require.EqualValues(t, 15, reset("3", true)[0].Pending)
	require.Zero(t, reset("new", true)[0].Pending)
	_, err := s.Consumer(t.Context(), "pinwheel-acme-hello-0")
	require.NoError(t, err, "nothing has changed")

	done := reset(middle, false)
	require.EqualValues(t, 7, done[0].Pending)
	require.Equal(t, "pinwheel-acme-hello-1", done[0].Consumer())
	p.Changed()
	b.awaits("acme", "hello", 24)
	_, err = s.Consumer(t.Context(), "pinwheel-acme-hello-0")
	require.ErrorIs(t, err, jetstream.ErrConsumerNotFound)
	states, more, err := store.List(t.Context(), "acme", "", 1, false)
	require.NoError(t, err)
	require.Len(t, states, 1)
	require.True(t, more)
	states, more, err = store.List(t.Context(), "acme", states[0].Consumer(), 1, true)
	require.NoError(t, err)
	require.Len(t, states, 1)
	require.False(t, more)
	require.Eventually(t, func() bool {
		states, more, err = store.List(t.Context(), "acme", "", 100, true)
		return err == nil && len(states) == 2 && !more && states[0].Pending == 0 && states[0].Problem == ""
	}, patience, 10*time.Millisecond)
	for seq, n := range b.sequences("acme", "hello") {
		i, err := strconv.Atoi(seq)
		require.NoError(t, err)
		require.Equal(t, 1+min(1, i/11), n, "message %s", seq)
	}

	_, err = store.Reset(t.Context(), "acme", "jobs", -1, start, true)
	require.ErrorContains(t, err, "stream JOBS removes what is acked")
	_, err = store.Reset(t.Context(), "acme", "hello", 7, start, true)
	require.ErrorIs(t, err, sources.ErrNoSource)
	for _, bad := range []string{"", "-1", "0", "yesterday", "{}"} {
		_, err := sources.ParseStart(bad)
		require.Error(t, err, bad)
	}
}

// now is the time of the server, between what was stored and what will be.
func (b *bed) now() string {
	s, err := b.JS.Stream(b.t.Context(), "ORDERS")
	require.NoError(b.t, err)
	return s.CachedInfo().State.LastTime.Add(time.Nanosecond).Format(time.RFC3339Nano)
}

// A source of another account is read there, under the same names. That the account is away holds up no other source.
func TestSourcesOfOtherAccounts(t *testing.T) {
	t.Parallel()
	b := open(t)
	warehouse, away := natstest.Start(t), natstest.Start(t)
	connect := func(name, url string) {
		nc, err := natstest.Dial(url)
		require.NoError(t, err)
		t.Cleanup(nc.Close)
		b.cfg.Conns[name], err = sources.NewConn(nc, "")
		require.NoError(t, err)
	}
	connect("warehouse", warehouse.URL())
	connect("away", away.URL())
	away.Close()
	require.Eventually(t, func() bool { return !b.cfg.Conns["away"].NC.IsConnected() }, patience, 10*time.Millisecond)
	for _, js := range []jetstream.JetStream{b.JS, b.cfg.Conns["warehouse"].JS} {
		_, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "STOCK", Subjects: []string{"stock.>"}})
		require.NoError(t, err)
	}
	for range 20 {
		_, err := b.cfg.Conns["warehouse"].JS.Publish(t.Context(), "stock.there", []byte("x"))
		require.NoError(t, err)
	}
	b.publish("stock.here", 5, 10)
	b.grant("acme", "warehouse/stream:STOCK", "away/stream:STOCK")
	b.deploy("acme", "away", workers.Source{Stream: "STOCK", Connection: "away", Start: start})
	b.deploy("acme", "local", workers.Source{Stream: "STOCK", Start: start}) // it is not granted
	b.deploy("acme", "nowhere", workers.Source{Stream: "STOCK", Connection: "nowhere", Start: start})
	b.deploy("acme", "stock", workers.Source{Stream: "STOCK", Connection: "warehouse", Start: start})
	b.process()
	b.awaits("acme", "stock", 20)
	for _, e := range b.events("acme", "stock") {
		require.Equal(t, "stock.there", e.Header.Get(events.HeaderSourceSubject))
	}
	require.Zero(t, b.count("acme", "local"))
	s, err := b.cfg.Conns["warehouse"].JS.Stream(t.Context(), "STOCK")
	require.NoError(t, err)
	require.Equal(t, 1, s.CachedInfo().State.Consumers)
}

// A connection that does not answer holds up no other source, also not while a consumer there is to be removed.
func TestASilentConnectionHoldsUpNobody(t *testing.T) {
	t.Parallel()
	b := open(t)
	_, err := b.NC.SubscribeSync("$JS.silent.API.>") // it gets the requests, and answers none
	require.NoError(t, err)
	b.cfg.Conns["silent"], err = sources.NewConn(b.NC, "silent")
	require.NoError(t, err)
	b.stream(jetstream.StreamConfig{Name: "STOCK", Subjects: []string{"stock.>"}})
	b.grant("acme", "silent/stream:*")
	b.grant("beta", "stream:*")
	for i := range 20 {
		b.deploy("acme", fmt.Sprint("w", i), workers.Source{Stream: "STOCK", Connection: "silent", Start: start})
	}
	p := b.process()
	for i := range 3 {
		b.deploy("beta", fmt.Sprint("w", i), workers.Source{Stream: "STOCK", Start: start})
		b.publish("stock.a", 5, 10)
		p.Changed()
		b.awaits("beta", fmt.Sprint("w", i), 5)
	}
}

// A process that ends stores the messages of core subjects that have come.
func TestCoreMessagesThatCameAreStored(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.grant("acme", "subject:>")
	b.deploy("acme", "hello", workers.Source{Subject: "sensors.>"})
	const rounds, each = 10, 200
	for round := range rounds {
		p := b.process()
		before := b.count("acme", "hello")
		require.Eventually(t, func() bool { // it listens
			require.NoError(t, b.NC.Publish("sensors.probe", nil))
			return b.count("acme", "hello") > before
		}, patience, 10*time.Millisecond)
		for i := range each {
			require.NoError(t, b.NC.Publish("sensors.a", []byte(fmt.Sprint(round, i))))
		}
		require.NoError(t, b.NC.Flush())
		p.end()
	}
	got := map[string]bool{}
	for _, e := range b.events("acme", "hello") {
		if e.Header.Get(events.HeaderSourceSubject) == "sensors.a" {
			got[string(e.Body)] = true
		}
	}
	require.Len(t, got, rounds*each)
}

func FuzzStart(f *testing.F) {
	for _, s := range []string{"new", "all", "17", "-1", "2026-01-02T15:04:05Z", "", "0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if at, err := sources.ParseStart(text); err == nil {
			require.NoError(t, workers.Source{Stream: "S", Start: at}.Validate())
			require.NotEqual(t, workers.Start{}, at)
		}
	})
}
