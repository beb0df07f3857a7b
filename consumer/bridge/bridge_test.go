package bridge_test

import (
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer/bridge"
	"github.com/pinwheel-run/pinwheel/consumer/limit"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/events/workers/catalog"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
	"github.com/pinwheel-run/pinwheel/internal/test/jsapitest"
)

const patience = time.Minute // for facts that must come true

// bed is a bridge that takes calls, and what it works with.
type bed struct {
	*jsapitest.Bed
	*bridge.Bridge
	t       *testing.T
	catalog catalog.Catalog
	pending limit.Pending
	replies prometheus.Counter
	pubAcks chan string
}

func open(t *testing.T, calls bool) *bed {
	t.Helper()
	b := &bed{Bed: jsapitest.Open(t), t: t, replies: prometheus.NewCounter(prometheus.CounterOpts{Name: "replies"}),
		pubAcks: make(chan string, 1)}
	b.Bridge = bridge.New(bridge.Config{
		Prefix: jsapitest.Prefix, Decoder: events.Decoder{Subjects: jsapitest.Prefix, ReplyPrefixes: []string{"_INBOX."}},
		Catalog: &b.catalog, Calls: calls, Replies: b.replies,
		PubAck: func(subject string) { b.pubAcks <- subject },
	}, b.API, b.Usage, &b.pending, zerolog.Nop(), zerolog.Nop())
	require.NoError(t, b.Open())
	return b
}

// count returns a counter of the bridge.
func (b *bed) count(name string) int {
	b.t.Helper()
	reg := prometheus.NewRegistry()
	reg.MustRegister(b.Collectors()...)
	families, err := reg.Gather()
	require.NoError(b.t, err)
	for _, f := range families {
		if f.GetName() == name {
			return int(f.GetMetric()[0].GetCounter().GetValue())
		}
	}
	b.t.Fatal(name)
	return 0
}

// refusal calls, and returns the failure that the bridge answers with.
func (b *bed) refusal(m *nats.Msg) *events.Reply {
	b.t.Helper()
	answer, err := b.NC.RequestMsg(m, patience)
	require.NoError(b.t, err)
	r, err := events.DecodeReply(events.Header(answer.Header), answer.Data)
	require.NoError(b.t, err)
	require.NotNil(b.t, r.Failure)
	return r
}

// last returns the last event that is stored, when there are n.
func (b *bed) last(n int) *stored.Message {
	b.t.Helper()
	require.Eventually(b.t, func() bool { return b.count("pinwheel_calls_stored_total") == n }, patience, time.Millisecond)
	s, err := b.JS.Stream(b.t.Context(), events.StreamEvents)
	require.NoError(b.t, err)
	m, err := stored.Get(b.t.Context(), b.NC, events.StreamEvents, stored.Request{Seq: s.CachedInfo().State.LastSeq})
	require.NoError(b.t, err)
	return m
}

func TestCallBecomesAnEvent(t *testing.T) {
	t.Parallel()
	b := open(t, true)
	inbox := b.NC.NewInbox()
	require.NoError(t, b.NC.PublishMsg(&nats.Msg{
		Subject: jsapitest.Prefix.Call(events.Fetch, "acme", "w"), Reply: inbox, Data: []byte("body"),
		Header: nats.Header{
			"nats-msg-id": {"id"}, "X-User": {"a", "b"}, "Nats-Rollup": {"all"}, "nats-ttl": {"1s"},
			"Reply-To": {"_INBOX.other"}, "Dead-Reason": {"cpu"},
		},
	}))
	m := b.last(1)
	_, kind, owner, worker, ok := jsapitest.Prefix.ParseStored(m.Subject)
	require.True(t, ok)
	require.Equal(t, []string{"fetch", "acme", "w", "body"}, []string{kind, owner, worker, string(m.Data)})
	require.Equal(t, nats.Header{
		"Nats-Msg-Id": {"acme:id"}, "Event-Id": {"id"}, "X-User": {"a", "b"}, "Reply-To": {inbox},
	}, m.Header, "headers that steer NATS are not stored, and the reply goes to the requester")

	require.NoError(t, b.NC.Publish(jsapitest.Prefix.Call(events.Task, "acme", "w"), nil))
	require.Empty(t, b.last(2).Header, "no reply is wanted, and no id is given")
	require.Zero(t, testutil.ToFloat64(b.replies), "stored calls are answered when they have run")
}

func TestRefusedCallsAreAnsweredAndNotStored(t *testing.T) {
	t.Parallel()
	b := open(t, true)
	before := b.Stored(events.StreamEvents)
	to := jsapitest.Prefix.Call(events.Task, "acme", "w")
	r := b.refusal(&nats.Msg{Subject: string(jsapitest.Prefix) + ".call.task.acme",
		Header: nats.Header{"Event-Id": {"e"}}})
	require.Equal(t, []any{events.ReasonMalformed, "e"}, []any{r.Failure.Reason, r.EventID})
	r = b.refusal(&nats.Msg{Subject: to, Header: nats.Header{"Nats-Msg-Id": {"a", "b"}}})
	require.Equal(t, events.ReasonMalformed, r.Failure.Reason)
	r = b.refusal(&nats.Msg{Subject: to, Data: make([]byte, b.NC.MaxPayload()-1<<10)})
	require.Equal(t, events.ReasonMalformed, r.Failure.Reason, "JetStream never stores it")
	require.Equal(t, 3, b.count("pinwheel_calls_refused_total"))
	// counted after it is sent
	require.Eventually(t, func() bool { return testutil.ToFloat64(b.replies) == 3 }, patience, time.Millisecond)

	for b.pending.Begin("acme", 100) { // until no more calls may wait
	}
	r = b.refusal(&nats.Msg{Subject: to})
	require.Equal(t, events.ReasonUnavailable, r.Failure.Reason)
	require.Contains(t, r.Failure.Message, "wait to be stored")
	require.Equal(t, before, b.Stored(events.StreamEvents))
}

// Nothing is published where no reply may go: a requester could name the subject of another owner.
func TestCallWithAForbiddenReplySubjectIsNotAnswered(t *testing.T) {
	t.Parallel()
	b := open(t, true)
	for i, subject := range []string{"private.x", string(jsapitest.Prefix) + ".events.task.globex.w", "$JS.API.INFO"} {
		sub, err := b.NC.SubscribeSync(subject)
		require.NoError(t, err)
		require.NoError(t, b.NC.PublishRequest(jsapitest.Prefix.Call(events.Task, "acme", "w"), subject, nil))
		require.Eventually(t, func() bool { return b.count("pinwheel_calls_refused_total") == i+1 }, patience,
			time.Millisecond, subject)
		require.NoError(t, b.NC.Flush())
		pending, _, err := sub.Pending()
		require.NoError(t, err)
		require.Zero(t, pending, subject)
	}
	require.Zero(t, testutil.ToFloat64(b.replies))
	require.Zero(t, b.count("pinwheel_calls_stored_total"))
}

// A client that names the subject of calls as the reply subject of a publish makes the server call.
func TestAnswerOfJetStreamIsNoCall(t *testing.T) {
	t.Parallel()
	b := open(t, true)
	to := jsapitest.Prefix.Call(events.Task, "acme", "w")
	require.NoError(t, b.NC.PublishRequest(jsapitest.Prefix.Event(events.Task, "globex", "w"), to, nil))
	select {
	case subject := <-b.pubAcks:
		require.Equal(t, to, subject)
	case <-time.After(patience):
		t.Fatal("the answer was not noticed")
	}
	require.Zero(t, b.count("pinwheel_calls_stored_total"))
}

func TestBridgeTakesCallsWhileItIsOpen(t *testing.T) {
	t.Parallel()
	to := jsapitest.Prefix.Call(events.Task, "acme", "w")
	_, err := open(t, false).NC.Request(to, nil, patience)
	require.ErrorIs(t, err, nats.ErrNoResponders, "calls are off")

	b := open(t, true)
	require.Equal(t, events.ReasonMalformed, b.refusal(&nats.Msg{Subject: to + ".more"}).Failure.Reason)
	b.Close()
	require.Eventually(t, func() bool {
		_, err := b.NC.Request(to+".more", nil, patience)
		return errors.Is(err, nats.ErrNoResponders)
	}, patience, time.Millisecond)
}

// A call whose id is that of an event of another owner is stored all the same; an id of the caller's own counts once.
func TestIDsOfAnotherOwnerAreInNobodysWay(t *testing.T) {
	t.Parallel()
	b := open(t, true)
	_, err := b.JS.Publish(t.Context(), jsapitest.Prefix.Event(events.Task, "globex", "w"), nil,
		jetstream.WithMsgID("acme:order-1"))
	require.NoError(t, err)
	call := &nats.Msg{Subject: jsapitest.Prefix.Call(events.Task, "acme", "w"),
		Header: nats.Header{"Nats-Msg-Id": {"order-1"}}, Data: []byte("{}")}
	require.NoError(t, b.NC.PublishMsg(call))
	m := b.last(1)
	_, _, owner, _, ok := jsapitest.Prefix.ParseStored(m.Subject)
	require.True(t, ok)
	require.Equal(t, "acme", owner)
	require.Equal(t, []string{"order-1"}, m.Header["Event-Id"])
	require.Regexp(t, "^acme:order-1:[A-Z2-7]{26}$", m.Header[nats.MsgIdHdr][0])

	call.Header.Set("Nats-Msg-Id", "order-2")
	require.NoError(t, b.NC.PublishMsg(call))
	b.last(2)
	require.Contains(t, b.refusal(call).Failure.Message, "the event of that id is stored already")
	require.Equal(t, 2, b.count("pinwheel_calls_stored_total"))
}

// An owner whose calls are refused without end gets some answers. The others are counted, and another owner's call is
// stored.
func TestRefusedCallsAreAnsweredWithinARate(t *testing.T) {
	t.Parallel()
	b := open(t, true)
	b.catalog.SetPolicy("acme", workers.Policy{Calls: 1})
	const flood = 30_000
	inbox := b.NC.NewInbox()
	for range flood {
		require.NoError(t, b.NC.PublishRequest("pinwheel.call.task.acme.w", inbox, nil))
	}
	require.NoError(t, b.NC.PublishRequest("pinwheel.call.task.beta.w", inbox, nil))
	require.Eventually(t, func() bool {
		return b.count("pinwheel_calls_stored_total")+b.count("pinwheel_calls_refused_total")+
			b.count("pinwheel_calls_dropped_total") == flood+1
	}, patience, time.Millisecond)
	require.Positive(t, b.count("pinwheel_calls_refused_total"))
	require.Positive(t, b.count("pinwheel_calls_dropped_total"))
	require.GreaterOrEqual(t, b.count("pinwheel_calls_stored_total"), 2, "beta's too")
}
