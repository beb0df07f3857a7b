package client_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/client"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

const patience = time.Minute

// stream makes an event stream as the fleet does.
func stream(t testing.TB, nc *nats.Conn, change func(*jetstream.StreamConfig)) jetstream.Stream {
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	s := events.Subjects(events.DefaultPrefix)
	cfg := jetstream.StreamConfig{
		Name: "EVENTS", Subjects: []string{s.AllEvents()}, Retention: jetstream.WorkQueuePolicy,
		SubjectTransform: &jetstream.SubjectTransformConfig{Source: s.AllEvents(), Destination: s.Stored()},
	}
	if change != nil {
		change(&cfg)
	}
	st, err := js.CreateStream(t.Context(), cfg)
	require.NoError(t, err)
	return st
}

// play plays Pinwheel: it decodes each event, lets handle answer, and acks.
func play(t testing.TB, st jetstream.Stream, handle func(*events.Event) *events.Reply, nc *nats.Conn) {
	cons, err := st.CreateConsumer(t.Context(), jetstream.ConsumerConfig{Durable: "all",
		AckPolicy: jetstream.AckExplicitPolicy})
	require.NoError(t, err)
	d := events.Decoder{Subjects: events.DefaultPrefix, ReplyPrefixes: []string{"_INBOX."}}
	running, err := cons.Consume(func(m jetstream.Msg) {
		e, failure := d.Decode(events.Origin{Subject: m.Subject(), Seq: 1}, events.Header(m.Headers()), m.Data(), time.Now())
		r := handle(e)
		if failure != nil {
			r = events.FailureReply(e, 1, failure)
		}
		if r != nil && e.ReplyTo != "" {
			r.EventID, r.Attempt = e.ID, 1
			_ = nc.PublishMsg(&nats.Msg{Subject: e.ReplyTo, Header: nats.Header(r.Encode()), Data: r.Body})
		}
		_ = m.Ack()
	})
	require.NoError(t, err)
	t.Cleanup(running.Stop)
}

func newClient(t testing.TB, nc *nats.Conn, opts ...client.Option) *client.Client {
	c, err := client.New(nc, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestCallFetch(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	got := make(chan *events.Event, 1)
	play(t, stream(t, nc, nil), func(e *events.Event) *events.Reply {
		got <- e
		return &events.Reply{Status: 201, Headers: []string{"x-a", "b"}, Body: []byte("hi"), Version: "1-a",
			Duration: time.Millisecond}
	}, nc)
	c := newClient(t, nc)
	ctx := within(t, patience)
	r, err := c.Call(ctx, client.Request{
		Kind: events.Fetch, Owner: "acme", Worker: "hello", ID: "order-1", Version: "1", Body: []byte("{}"),
		ContentType: "application/json",
		Method:      "PUT", URL: "/a?b=c", HTTPHeader: http.Header{"X-Many": {"1", "2"}},
		Header: events.Header{"traceparent": {"00-1"}},
	})
	require.NoError(t, err)
	require.Equal(t, &events.Reply{
		Status: 201, Headers: []string{"x-a", "b"}, Body: []byte("hi"), EventID: "order-1", Attempt: 1, Version: "1-a",
		Duration: time.Millisecond,
	}, r)
	e := <-got
	require.Equal(t, []string{"PUT", "http://hello.acme.pinwheel/a?b=c", "order-1", "1"},
		[]string{e.Method, e.URL, e.ID, e.Version})
	require.Equal(t, []string{"acme:order-1"}, e.Header["Nats-Msg-Id"])
	require.Equal(t, []string{"00-1"}, e.Header["traceparent"])
	require.Subset(t, e.HTTPHeaders, []string{"X-Many", "1", "2", "Content-Type", "application/json"})
	deadline, _ := ctx.Deadline()
	require.True(t, e.Deadline.Equal(deadline), "nobody waits longer than the context")
}

func TestCallTaskAndScheduled(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	got := make(chan *events.Event, 1)
	play(t, stream(t, nc, nil), func(e *events.Event) *events.Reply {
		got <- e
		return &events.Reply{Body: []byte(`{"success":true,"data":1}`)}
	}, nc)
	c := newClient(t, nc)
	r, err := c.Call(within(t, patience), client.Request{Kind: events.Task, Owner: "acme", Worker: "hello",
		Body: []byte(`[1]`), ContentType: "application/json"})
	require.NoError(t, err)
	require.JSONEq(t, `{"success":true,"data":1}`, string(r.Body))
	e := <-got
	require.True(t, e.Deadline.IsZero(), "a task is worth doing when nobody waits")
	require.Equal(t, "application/json", e.Header.Get("Content-Type"))

	at := time.UnixMilli(1_700_000_000_123)
	_, err = c.Call(within(t, patience), client.Request{Kind: events.Scheduled, Owner: "acme", Worker: "hello",
		ScheduledTime: at})
	require.NoError(t, err)
	require.Equal(t, at.UnixMilli(), (<-got).ScheduledTime)
}

func TestCallsInFlight(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	play(t, stream(t, nc, nil), func(e *events.Event) *events.Reply {
		return &events.Reply{Status: 200, Body: append([]byte("echo "), e.Body...)}
	}, nc)
	c := newClient(t, nc)
	var wg sync.WaitGroup
	errs := make(chan error, 1000)
	for i := range 1000 {
		wg.Go(func() {
			body := fmt.Sprint(i)
			r, err := c.Call(within(t, patience), client.Request{Kind: events.Fetch, Owner: fmt.Sprint("o", i%7), Worker: "w",
				Body: []byte(body)})
			if err != nil || string(r.Body) != "echo "+body {
				errs <- fmt.Errorf("call %d: %v %+v", i, err, r) //nolint:errorlint // may be nil
			}
		})
	}
	wg.Wait()
	close(errs)
	require.NoError(t, <-errs)
}

func TestCallFails(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	play(t, stream(t, nc, nil), func(e *events.Event) *events.Reply {
		return events.FailureReply(e, 1, events.Fail(events.ReasonCPU, "50 ms are over"))
	}, nc)
	r, err := newClient(t, nc).Call(within(t, patience), client.Request{Kind: events.Fetch, Owner: "acme",
		Worker: "hello"})
	var failure *events.Failure
	require.ErrorAs(t, err, &failure)
	require.Equal(t, events.ReasonCPU, failure.Reason)
	require.Equal(t, 429, r.Status)
	require.Equal(t, failure, r.Failure)
}

// The reply ends the call though the PubAck comes later, or never.
func TestReplyWins(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	sub, err := nc.Subscribe("pinwheel.events.>", func(m *nats.Msg) {
		r := &events.Reply{Status: 200, Attempt: 1, Body: []byte(`{"error":{"code":1},"stream":"looks like a PubAck"}`)}
		_ = nc.PublishMsg(&nats.Msg{Subject: m.Header.Get("Reply-To"), Header: nats.Header(r.Encode()), Data: r.Body})
		_ = m.Respond([]byte(`{"stream":"S","seq":1}`))
		// twice
		_ = nc.PublishMsg(&nats.Msg{Subject: m.Header.Get("Reply-To"), Header: nats.Header(r.Encode()), Data: r.Body})
	})
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
	defer func() { _ = sub.Unsubscribe() }()
	c := newClient(t, nc)
	for range 100 {
		r, err := c.Call(within(t, patience), client.Request{Kind: events.Fetch, Owner: "acme", Worker: "hello"})
		require.NoError(t, err)
		require.Equal(t, 200, r.Status)
	}
}

func TestPublish(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	st := stream(t, nc, nil)
	c := newClient(t, nc)
	ack, err := c.Publish(within(t, patience), client.Request{Kind: events.Task, Owner: "acme", Worker: "hello", ID: "1"})
	require.NoError(t, err)
	require.Equal(t, &client.Ack{Stream: "EVENTS", Seq: 1}, ack)
	m, err := st.GetMsg(t.Context(), 1)
	require.NoError(t, err)
	require.Empty(t, m.Header.Get("Reply-To"), "nobody waits")

	ack, err = c.Publish(within(t, patience), client.Request{Kind: events.Task, Owner: "acme", Worker: "hello", ID: "1"})
	require.NoError(t, err)
	require.Equal(t, &client.Ack{Stream: "EVENTS", Seq: 1, Duplicate: true}, ack)
	ack, err = c.Publish(within(t, patience), client.Request{Kind: events.Task, Owner: "other", Worker: "hello", ID: "1"})
	require.NoError(t, err)
	require.False(t, ack.Duplicate, "another owner's id is another id")

	_, err = c.Call(within(t, patience), client.Request{Kind: events.Task, Owner: "acme", Worker: "hello", ID: "1"})
	require.ErrorIs(t, err, client.ErrDuplicate)
}

func TestNoStream(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	c := newClient(t, nc)
	r := client.Request{Kind: events.Task, Owner: "acme", Worker: "hello"}
	_, err := c.Publish(within(t, patience), r)
	require.ErrorIs(t, err, client.ErrNoStream)
	_, err = c.Call(within(t, patience), r)
	require.ErrorIs(t, err, client.ErrNoStream)
}

func TestStreamRefuses(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	stream(t, nc, func(cfg *jetstream.StreamConfig) { cfg.MaxMsgs, cfg.Discard = 1, jetstream.DiscardNew })
	c := newClient(t, nc)
	r := client.Request{Kind: events.Task, Owner: "acme", Worker: "hello"}
	_, err := c.Publish(within(t, patience), r)
	require.NoError(t, err)
	_, err = c.Call(within(t, patience), r)
	var refused *jetstream.APIError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, 503, refused.Code)
	require.ErrorContains(t, err, "maximum messages exceeded")
}

func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	st := stream(t, nc, nil)
	c := newClient(t, nc)
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() {
		_, err := c.Call(ctx, client.Request{Kind: events.Fetch, Owner: "acme", Worker: "hello"})
		failed <- err
	}()
	require.Eventually(t, func() bool {
		info, err := st.Info(t.Context())
		return err == nil && info.State.Msgs == 1
	}, patience, time.Millisecond)
	cancel()
	require.ErrorIs(t, <-failed, context.Canceled)

	go func() {
		_, err := c.Call(t.Context(), client.Request{Kind: events.Fetch, Owner: "acme", Worker: "hello"})
		failed <- err
	}()
	require.Eventually(t, func() bool {
		info, err := st.Info(t.Context())
		return err == nil && info.State.Msgs == 2
	}, patience, time.Millisecond)
	require.NoError(t, c.Close())
	require.ErrorIs(t, <-failed, client.ErrClosed)
	_, err := c.Publish(t.Context(), client.Request{Kind: events.Task, Owner: "acme", Worker: "hello"})
	require.ErrorIs(t, err, client.ErrClosed)
}

func TestStrangerAnswers(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	answers := []string{"hello", `{}`, ""}
	i := 0
	_, err := nc.Subscribe("pinwheel.events.>", func(m *nats.Msg) { _ = m.Respond([]byte(answers[i])); i++ })
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
	c := newClient(t, nc)
	for range answers {
		_, err := c.Call(within(t, patience), client.Request{Kind: events.Task, Owner: "acme", Worker: "hello"})
		require.ErrorContains(t, err, "neither from the stream nor from Pinwheel")
	}
}

func TestMalformedIsNotSent(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	st := stream(t, nc, nil)
	c := newClient(t, nc)
	for want, r := range map[string]client.Request{
		`kind "unknown"`:            {Owner: "a", Worker: "b"},
		`owner "a!b"`:               {Kind: events.Task, Owner: "a!b", Worker: "b"},
		"is not pinwheel.events":    {Kind: events.Task, Owner: "a.b", Worker: "b"},
		`worker "w "`:               {Kind: events.Task, Owner: "a", Worker: "w "},
		"cannot carry a body":       {Kind: events.Fetch, Owner: "a", Worker: "b", Method: "GET", Body: []byte("x")},
		"not the JSON":              {Kind: events.Task, Owner: "a", Worker: "b", ContentType: "application/json", Body: []byte("{")},
		"absolute http":             {Kind: events.Fetch, Owner: "a", Worker: "b", URL: "nonsense"},
		"does not carry this name":  {Kind: events.Task, Owner: "a", Worker: "b", Header: events.Header{"a b": {"c"}}},
		"does not carry line break": {Kind: events.Task, Owner: "a", Worker: "b", Header: events.Header{"a": {"b\r\nc"}}},
		"at most 256 bytes":         {Kind: events.Task, Owner: "a", Worker: "b", ID: strings.Repeat("x", 257)},
	} {
		_, err := c.Publish(within(t, patience), r)
		require.ErrorIs(t, err, client.ErrMalformed)
		require.ErrorContains(t, err, want)
	}
	info, err := st.Info(t.Context())
	require.NoError(t, err)
	require.Zero(t, info.State.LastSeq)
}

func TestPrefix(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	s := events.Subjects("other")
	stream(t, nc, func(cfg *jetstream.StreamConfig) {
		cfg.Subjects = []string{s.AllEvents()}
		cfg.SubjectTransform = &jetstream.SubjectTransformConfig{Source: s.AllEvents(), Destination: s.Stored()}
	})
	_, err := newClient(t, nc, client.Prefix("other")).Publish(within(t, patience),
		client.Request{Kind: events.Task, Owner: "a", Worker: "b"})
	require.NoError(t, err)
}

func BenchmarkCall(b *testing.B) {
	nc := natstest.Connect(b, natstest.Start(b))
	play(b, stream(b, nc, nil), func(e *events.Event) *events.Reply { return &events.Reply{Status: 200, Body: e.Body} },
		nc)
	c := newClient(b, nc)
	r := client.Request{Kind: events.Fetch, Owner: "acme", Worker: "hello", Body: make([]byte, 256)}
	b.SetParallelism(32) // 64 calls in flight on two cores
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := c.Call(context.Background(), r); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
