package consumer_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// deadTo is dead, with a worker or subject that is notified.
func deadTo(h events.DeadHook) handler {
	return func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
		s, _ := dead(e)
		s.Outcome.OnDead = &h
		return s, true
	}
}

func TestWorkerIsToldOfDeadLetters(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	js := jetStream(t, nc)
	// The notified worker fails too, and names a worker to notify: it is not notified.
	d := &dispatcher{handle: deadTo(events.DeadHook{Worker: "undertaker"})}
	start(t, nc, testConfig(), d)
	publish(t, nc, events.Task, "acme", nats.Header{"X": {"y"}}, `{"id":1}`)
	eventuallyStored(t, js, events.StreamDead, 2)
	eventuallyStored(t, js, events.StreamEvents, 0)
	all := letters(t, deadletter.NewStore(js, subjects), deadletter.Filter{})
	require.Equal(t, events.DeadHook{Worker: "undertaker"}, all[0].Hook)
	require.Zero(t, all[1].Hook)
	require.Len(t, d.events(), 2)
	e := d.events()[1]
	require.Equal(t, []string{"task", "acme", "undertaker", "dead:" + all[0].Identity()},
		[]string{e.Kind.String(), e.Owner, e.Worker, e.ID})
	var j events.LetterJSON
	require.NoError(t, json.Unmarshal(e.Body, &j))
	require.Equal(t, all[0].Seq, j.ID)
	require.Equal(t, `{"id":1}`, *j.Body)
	require.Equal(t, events.ReasonException, j.Reason)
	require.Equal(t, []string{"y"}, j.Headers["X"])
	told, err := events.ParseLetter(e.Body)
	require.NoError(t, err)
	require.Equal(t, all[0].Identity(), told.Identity())
	e.UserHeaders(func(name, _ string) { require.NotContains(t, name, "Dead-") })
}

func TestSubjectIsToldOfDeadLetters(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	js := jetStream(t, nc)
	cfg := testConfig()
	cfg.ReplyPrefixes = []string{"_INBOX.", "alerts."}
	hook := make(chan events.DeadHook, 1)
	start(t, nc, cfg, &dispatcher{handle: func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
		return deadTo(<-hook)(e)
	}})
	_, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "ALERTS", Subjects: []string{"alerts.kept"}})
	require.NoError(t, err)
	sub, err := nc.SubscribeSync("alerts.heard")
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
	all, err := nc.SubscribeSync("private.>")
	require.NoError(t, err)
	require.NoError(t, nc.Flush())

	hook <- events.DeadHook{Subject: "alerts.kept", JetStream: true}
	publish(t, nc, events.Task, "acme", nil, "x")
	eventuallyStored(t, js, "ALERTS", 1)
	hook <- events.DeadHook{Subject: "alerts.heard"}
	publish(t, nc, events.Task, "acme", nil, strings.Repeat("\xff", int(nc.MaxPayload())-64<<10))
	m, err := sub.NextMsg(patience)
	require.NoError(t, err)
	var j events.LetterJSON
	require.NoError(t, json.Unmarshal(m.Data, &j))
	require.Nil(t, j.BodyBase64, "what does not fit is left out")
	require.Equal(t, int(nc.MaxPayload())-64<<10, j.BodyBytes)
	require.Regexp(t, "^acme:dead:[0-9a-f]{32}$", m.Header.Get("Nats-Msg-Id"))

	for _, subject := range []string{"private.x", "pinwheel.events.task.globex.w",
		"$JS.API.STREAM.PURGE.PINWHEEL_EVENTS"} {
		hook <- events.DeadHook{Subject: subject}
		publish(t, nc, events.Task, "acme", nil, "x")
	}
	eventuallyStored(t, js, events.StreamEvents, 0)
	eventuallyStored(t, js, events.StreamDead, 5)
	_, err = all.NextMsg(50 * time.Millisecond)
	require.ErrorIs(t, err, nats.ErrTimeout, "the fleet publishes where its configuration allows only")
}
