package consumer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// sendPart sends a part as a requester does, and returns the error that it is answered with.
func sendPart(t *testing.T, nc *nats.Conn, m *nats.Msg) (seq uint64, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ack, err := jetStream(t, nc).PublishMsg(ctx, m)
	if err != nil {
		return 0, err
	}
	require.Equal(t, events.StreamBodies, ack.Stream)
	return ack.Sequence, nil
}

// Parts reach JetStream only through the fleet: without headers, and only if a client waits for the answer.
func TestPartsOfBodiesAreStoredByTheFleet(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	js := jetStream(t, nc)
	d := &dispatcher{handle: ack}
	start(t, nc, testConfig(), d)
	for name, value := range map[string]string{
		"Nats-Expected-Last-Msg-Id": "wrong", "Nats-Expected-Last-Sequence": "77", "Nats-Expected-Stream": "ELSEWHERE",
		"Nats-Msg-Id": "beta:1", "Nats-Rollup": "all", "Nats-TTL": "1s",
		"Nats-Sequence": "1", "Status": "503",
	} {
		seq, err := sendPart(t, nc, &nats.Msg{Subject: subjects.BodyPart("acme", "a", 0), Header: nats.Header{name: {value}},
			Data: []byte(name)})
		require.NoError(t, err, name)
		answer, err := nc.Request("$JS.API.STREAM.MSG.GET."+events.StreamBodies, fmt.Appendf(nil, `{"seq":%d}`, seq),
			patience)
		require.NoError(t, err)
		var m struct {
			Message struct {
				Subject    string
				Data, Hdrs []byte
			}
		}
		require.NoError(t, json.Unmarshal(answer.Data, &m))
		require.Equal(t, name, string(m.Message.Data))
		require.Equal(t, subjects.BodyPart("acme", "a", 0), m.Message.Subject, "where it was read from before the fleet stored it, too")
		require.Empty(t, m.Message.Hdrs)
	}
	n := stored(t, js, events.StreamBodies)
	for _, subject := range []string{"pinwheel.body.acme.a.x", "pinwheel.body.acme.a.-1", "pinwheel.body.acme.a.01",
		"pinwheel.body.acme.a.1048576", "pinwheel.body.acme.a!b.0"} {
		_, err := sendPart(t, nc, &nats.Msg{Subject: subject})
		var refused *jetstream.APIError
		require.ErrorAs(t, err, &refused, subject)
		require.Equal(t, 400, refused.Code)
	}
	_, err := sendPart(t, nc, &nats.Msg{Subject: subjects.BodyPart("acme", "a", 1),
		Data: make([]byte, nc.MaxPayload()-1000)})
	require.ErrorContains(t, err, "message size exceeds maximum allowed")
	require.NoError(t, nc.Publish(subjects.BodyPart("acme", "a", 2), []byte("nobody waits")))
	require.NoError(t, nc.PublishRequest(subjects.BodyPart("acme", "a", 3), "pinwheel.events.task.beta.w",
		[]byte("an event of beta?")))
	_, err = sendPart(t, nc, &nats.Msg{Subject: subjects.BodyPart("acme", "a", 4), Data: []byte("last")})
	require.NoError(t, err)
	require.Equal(t, n+1, stored(t, js, events.StreamBodies))
	require.Zero(t, stored(t, js, events.StreamEvents))
	require.Empty(t, d.events())
}

// Parts that requesters of an earlier version stored themselves are read and removed like others.
func TestPartsOfBeforeAreRead(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	js := jetStream(t, nc)
	_, err := js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name: events.StreamBodies, Subjects: []string{subjects.AllBodies()}, Discard: jetstream.DiscardNew, AllowDirect: true,
		MaxAge: 24 * time.Hour,
	})
	require.NoError(t, err)
	_, err = sendPart(t, nc, &nats.Msg{Subject: subjects.BodyPart("acme", "a", 0), Data: []byte("before")})
	require.NoError(t, err)
	type read struct {
		parts []string
		err   error
	}
	got := make(chan read, 2)
	start(t, nc, testConfig(), &dispatcher{handle: func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
		var r read
		for i := range e.Parts.N {
			part, err := e.Parts.Read(context.Background(), i)
			if err != nil {
				r.err = err
				break
			}
			r.parts = append(r.parts, string(part))
		}
		got <- r
		return ack(e)
	}})
	_, err = sendPart(t, nc, &nats.Msg{Subject: subjects.BodyPart("acme", "a", 1), Data: []byte("after")})
	require.NoError(t, err)
	_, err = sendPart(t, nc, &nats.Msg{Subject: subjects.BodyPart("acme", "b", 0), Data: []byte("of another body")})
	require.NoError(t, err)
	publish(t, nc, events.Fetch, "acme", nats.Header{"Body-Id": {"a"}, "Body-Parts": {"2"}}, "")
	require.Equal(t, read{parts: []string{"before", "after"}}, <-got)
	eventuallyStored(t, js, events.StreamBodies, 1)
	publish(t, nc, events.Fetch, "acme", nats.Header{"Body-Id": {"a"}, "Body-Parts": {"2"}}, "")
	require.ErrorContains(t, (<-got).err, "part 0 of 2 of body a is not there")
}

// A part that cannot be stored is answered as JetStream would answer.
func TestPartsThatCannotBeStored(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	js := jetStream(t, nc)
	cfg := testConfig()
	cfg.MaxBytes = 1 << 20
	start(t, nc, cfg, &dispatcher{handle: ack})
	var err error
	for i := 0; err == nil && i < 10; i++ {
		_, err = sendPart(t, nc, &nats.Msg{Subject: subjects.BodyPart("acme", "a", i), Data: make([]byte, 300<<10)})
	}
	require.ErrorContains(t, err, "maximum bytes exceeded")
	require.NoError(t, js.DeleteStream(t.Context(), events.StreamBodies))
	to, sub := inbox(t, nc)
	require.NoError(t, nc.PublishRequest(subjects.BodyPart("acme", "b", 0), to, []byte("x")))
	m, err := sub.NextMsg(patience)
	require.NoError(t, err)
	var answer struct {
		Error *jetstream.APIError
	}
	require.NoError(t, json.Unmarshal(m.Data, &answer))
	require.NotNil(t, answer.Error)
	require.Equal(t, 503, answer.Error.Code)
}

// A header that makes nats-server 2.15.2 give up a replicated stream does not reach it: parts are stored as before.
func TestHeadersOfPartsStallNoCluster(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes seconds")
	}
	c := natstest.StartCluster(t, 3)
	cfg := testConfig()
	cfg.Replicas, cfg.AckWait = 3, 3*time.Second
	startWithin(t, clusterPatience, c.Connect(0), cfg, &dispatcher{handle: ack})
	nc := c.Connect(1)
	js := jetStream(t, nc)
	for i := range 5 {
		m := &nats.Msg{Subject: subjects.BodyPart("acme", "a", i),
			Header: nats.Header{"Nats-Expected-Last-Msg-Id": {"wrong"}}, Data: []byte("x")}
		require.Eventually(t, func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			_, err := js.PublishMsg(ctx, m)
			return err == nil
		}, clusterPatience, 100*time.Millisecond, "part %d", i)
	}
}
