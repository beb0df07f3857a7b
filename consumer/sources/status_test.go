package sources_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer/sources"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// status is what a process knows of the only source of an owner.
func (p *process) status(t *testing.T, owner string) sources.Status {
	t.Helper()
	list, more := p.List(owner, "", "", 10)
	require.False(t, more)
	if len(list) == 0 {
		return sources.Status{}
	}
	require.Len(t, list, 1)
	return list[0]
}

// A source says what becomes of its messages: it is read, backs off, is paused, fails with the reason, or its stream is
// gone. When the reason is gone, it is read again.
func TestStatesOfSources(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.stream(jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}})
	source := workers.Source{Stream: "ORDERS", Start: start}
	b.grant("acme", "stream:*")
	b.deploy("acme", "hello", source)
	p := b.process()
	becomes := func(state sources.State, why string) sources.Status {
		t.Helper()
		var is sources.Status
		require.Eventually(t, func() bool {
			p.Changed()
			is = p.status(t, "acme")
			return is.State == state && strings.Contains(is.Why, why)
		}, patience, 10*time.Millisecond, "%v %q", state, why)
		return is
	}
	is := becomes(sources.Reads, "")
	require.Equal(t, 0, is.N)
	require.Equal(t, "pinwheel-acme-hello-0", is.Place())
	require.True(t, is.Behind.IsZero())

	b.catalog.SetPolicy("acme", workers.Policy{Consume: []string{"stream:*"},
		Paused: map[string]workers.Pause{workers.EveryWorker: {Since: time.Now()}}})
	becomes(sources.Paused, "") // a request that was there before may bring some
	b.publish("orders.a", 1000, 10)
	require.Eventually(t, func() bool {
		p.Changed()
		is = p.status(t, "acme")
		return is.State == sources.Paused && is.Pending > 0 && !is.Behind.IsZero()
	}, patience, 10*time.Millisecond)
	require.Equal(t, &sources.Summary{Sources: 1}, p.Summary(time.Now().Add(time.Hour)), "a pause is no fault")

	b.grant("acme")
	becomes(sources.Failing, "the policy of the owner does not grant it")
	require.Equal(t, &sources.Summary{Sources: 1, Failing: 1}, p.Summary(time.Now().Add(time.Hour)))
	require.False(t, p.status(t, "acme").IsFarBehind(time.Now().Add(time.Hour)), "it fails")

	b.grant("acme", "stream:*")
	becomes(sources.Reads, "")
	require.Eventually(t, func() bool { return p.status(t, "acme").Pending == 0 }, patience, 10*time.Millisecond)
	require.True(t, p.status(t, "acme").Behind.IsZero(), "nothing waits")

	require.Nil(t, b.Usage.Admit("acme", 40<<20))
	b.publish("orders.a", 600, 10)
	is = becomes(sources.BacksOff, "the owner has its share")
	require.Eventually(t, func() bool { return p.status(t, "acme").Pending > 0 }, patience, 10*time.Millisecond)
	require.Equal(t, 1, p.Summary(time.Now().Add(time.Hour)).Behind)

	require.NoError(t, b.JS.DeleteStream(t.Context(), "ORDERS"))
	becomes(sources.NoStream, "")
	b.stream(jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}})
	becomes(sources.BacksOff, "the owner has its share")
}

// A source of which as many events wait as may backs off: it is not read.
func TestASourceWhoseEventsWaitBacksOff(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.stream(jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}})
	for range 4000 {
		_, err := b.JS.PublishAsync("orders.a", []byte("x"))
		require.NoError(t, err)
	}
	<-b.JS.PublishAsyncComplete()
	b.grant("acme", "stream:*")
	b.deploy("acme", "hello", workers.Source{Stream: "ORDERS", Start: start})
	p := b.process()
	require.Eventually(t, func() bool {
		is := p.status(t, "acme")
		return is.State == sources.BacksOff && strings.Contains(is.Why, "its events wait in the fleet") && is.Pending > 0
	}, patience, 10*time.Millisecond)
}

// What processes know is listed by place, in parts, of one owner or of all. Metrics add it up.
func TestSourcesAreListedByPlace(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.stream(jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}})
	b.stream(jetstream.StreamConfig{Name: "JOBS", Subjects: []string{"jobs.>"}})
	for _, owner := range []string{"a", "b"} {
		b.grant(owner, "stream:*", "subject:sensors.>")
		b.deploy(owner, "hello", workers.Source{Stream: "ORDERS"}, workers.Source{Stream: "JOBS"},
			workers.Source{Subject: "sensors.>"}, workers.Source{Stream: "GONE"})
	}
	p := b.process()
	var all []sources.Status
	require.Eventually(t, func() bool {
		all, _ = p.List("", "", "", 100)
		return len(all) == 8
	}, patience, 10*time.Millisecond)
	var after string
	for i := range all {
		list, more := p.List("", after, "", 1)
		require.Equal(t, all[i].Place(), list[0].Place())
		require.Equal(t, i < 7, more)
		require.Less(t, after, list[0].Place())
		after = list[0].Place()
	}
	own, more := p.List("b", "", "", 100)
	require.Len(t, own, 4)
	require.False(t, more)
	part, _ := p.List("b", own[0].Place(), own[2].Place(), 100)
	require.Len(t, part, 2)
	require.Equal(t, -1, own[0].N, "core subjects have no consumer")
	require.Equal(t, "pinwheel-b-hello subject sensors.>", own[0].Place())
	reg := prometheus.NewPedanticRegistry()
	for _, c := range p.Collectors() {
		reg.MustRegister(c)
	}
	require.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(`# HELP pinwheel_sources Sources of active versions by what they do in the process: reads, backs off (the owner has its share, its events wait, or nothing is stored now), paused, failing, or no stream.
# TYPE pinwheel_sources gauge
pinwheel_sources{state="backs off"} 0
pinwheel_sources{state="failing"} 0
pinwheel_sources{state="no stream"} 2
pinwheel_sources{state="paused"} 0
pinwheel_sources{state="reads"} 6
`), "pinwheel_sources"))
	require.Equal(t, 3, testutil.CollectAndCount(p.Collectors()[0], "pinwheel_source_pending"), "two workers, and other")
}

// A list says when the first message that waits was stored, by the filters of the source.
func TestSourcesSayHowLongMessagesWait(t *testing.T) {
	t.Parallel()
	b := open(t)
	s := b.stream(jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}})
	b.publish("orders.other", 1, 10)
	b.publish("orders.a", 3, 10)
	b.catalog.SetPolicy("acme", workers.Policy{Consume: []string{"stream:*"},
		Paused: map[string]workers.Pause{workers.EveryWorker: {Since: time.Now()}}})
	b.deploy("acme", "hello", workers.Source{Stream: "ORDERS", Subjects: []string{"orders.b", "orders.a"}, Start: start})
	b.process()
	store := sources.Store{Conns: b.cfg.Conns}
	list := func(oldest bool) (all []sources.Progress) {
		require.Eventually(t, func() bool {
			var err error
			all, _, err = store.List(context.Background(), "acme", "", 10, oldest)
			return err == nil && len(all) == 1 && all[0].Problem == "" && all[0].Pending == 3
		}, patience, 10*time.Millisecond)
		return all
	}
	m, err := s.GetMsg(t.Context(), 2)
	require.NoError(t, err)
	require.True(t, m.Time.Equal(list(true)[0].Oldest))
	require.Zero(t, list(false)[0].Oldest)
	requests, size := 0, 0
	store.Paid = func(n, bytes int) { requests, size = requests+n, size+bytes }
	_, _, err = store.List(t.Context(), "acme", "", 10, true)
	require.NoError(t, err)
	require.Equal(t, 3, requests, "one for the consumer, and one for each filter")
	require.Equal(t, 10, size)
	require.NoError(t, b.JS.DeleteStream(t.Context(), "ORDERS"))
	require.Eventually(t, func() bool {
		all, _, err := store.List(context.Background(), "acme", "", 10, true)
		return err == nil && len(all) == 1 && all[0].NoStream
	}, patience, 10*time.Millisecond)
}
