package consumer_test

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
)

// JetStream's answers to a publish are no events, whichever reply subject the publisher uses: answers that a message is
// stored, refused or a duplicate.
func TestPubAcksAreNoEvents(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	js := jetStream(t, nc)
	d := &dispatcher{handle: ack}
	start(t, nc, testConfig(), d)
	send := func(replyTo, id string, body []byte) {
		m := &nats.Msg{Subject: subjects.Event(events.Task, "acme", "w"), Reply: replyTo, Data: body}
		if id != "" {
			m.Header = nats.Header{"Nats-Msg-Id": {id}}
		}
		require.NoError(t, nc.PublishMsg(m))
	}
	tooLarge := make([]byte, nc.MaxPayload()-1000)
	for _, replyTo := range []string{
		subjects.Event(events.Task, "beta", "w"), subjects.Event(events.Fetch, "beta", "w"),
		subjects.Call(events.Task, "beta", "w"),
		subjects.Parked(&events.Event{Kind: events.Task, Owner: "beta", Worker: "w"}),
		"pinwheel.schedules.due.0.task.beta.w.h.k",
	} {
		send(replyTo, "", []byte("1"))
		send(replyTo, "known", []byte("2"))
		send(replyTo, "known", []byte("2"))
		send(replyTo, "", tooLarge)
	}
	for _, looksAlike := range []string{
		`{"stream":"camera","seq":5}`, `{"stream":"PINWHEEL_EVENTS","seq":5,"more":1}`, `{"stream":"PINWHEEL_EVENTS"}`,
		`{"error":{"code":1},"seq":5}`,
		`{"stream":"PINWHEEL_EVENTS","seq":5} {}`,
	} {
		require.NoError(t, nc.Publish(subjects.Event(events.Task, "gamma", "w"), []byte(looksAlike)))
	}
	publish(t, nc, events.Task, "gamma", nats.Header{"X": {"y"}}, `{"stream":"PINWHEEL_EVENTS","seq":5}`)
	require.Eventually(t, func() bool { return len(d.events()) >= 5+1+6 }, patience, 1e6)
	eventuallyStored(t, js, events.StreamEvents, 0)
	eventuallyStored(t, js, events.StreamParked, 0)
	eventuallyStored(t, js, events.StreamSchedules, 0)
	require.Zero(t, stored(t, js, events.StreamDead))
	ran := map[string]int{}
	for _, e := range d.events() {
		ran[e.Owner]++
	}
	require.Equal(t, map[string]int{"acme": 5 + 1, "gamma": 6}, ran, "and none of beta")
}
