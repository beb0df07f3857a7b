package consumer_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// steering are the headers with which Pinwheel itself tells NATS what to do.
var steering = []string{
	"Nats-Msg-Id", "Nats-Expected-Stream", "Nats-Expected-Last-Msg-Id", "Nats-Expected-Last-Subject-Sequence",
	"Nats-Expected-Last-Subject-Sequence-Subject",
	"Nats-Schedule", "Nats-Schedule-Target", "Nats-Schedule-TTL", "Nats-Schedule-Time-Zone", "Nats-TTL",
	"Nats-Required-Api-Level",
}

// Whichever headers an owner sends, the fleet publishes none that has a meaning to NATS: replies, dead letters, parked
// and delayed events, stored calls.
func TestHeadersOfOwnersSteerNothing(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	d := &dispatcher{handle: func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
		s := lifecycle.Settlement{Event: e, Outcome: lifecycle.Outcome{Verdict: lifecycle.Ack, Version: "1-abc"}}
		switch body := string(e.Body); {
		case body == "dead":
			return dead(e)
		case body == "park" && e.Origin.Stream != events.StreamParked:
			return park(e)
		case body == "later" && e.Attempt == 1:
			s.Outcome = lifecycle.Outcome{Verdict: lifecycle.Retry, Version: "1-abc", Delay: time.Hour,
				Failure: events.NewFailure(events.ReasonException, "x", "")}
		default:
			return echo(e)
		}
		return s, true
	}}
	start(t, nc, testConfig(), d)
	spy := make(chan *nats.Msg, 1000)
	for _, subject := range []string{"pinwheel.>", "_INBOX.spied.>"} {
		_, err := nc.ChanSubscribe(subject, spy)
		require.NoError(t, err)
		require.NoError(t, nc.Flush())
	}
	hostile := nats.Header{
		"nats-rollup": {"all"}, "NATS-TTL": {"1s"}, "Nats-Hostile": {"1"}, "nats-msg-id": {"stolen"},
		"Nats-schedule": {"@every 1s"}, "nats-Schedule-Target": {"pinwheel.pin"},
		"nats-expected-last-sequence": {"1"}, "Status": {"409"}, "status": {"503"}, "Description": {"Consumer Deleted"},
		"X-Fine": {"1"}, "Nats-Marker-Reason": {"MaxAge"},
	}
	for _, body := range []string{"ack", "dead", "park", "later"} {
		h := nats.Header{"Reply-To": {"_INBOX.spied." + body}}
		for name, values := range hostile {
			h[name] = values
		}
		delete(h, "nats-msg-id") // with it in lower case the event is the same each time, for Pinwheel
		publish(t, nc, events.Task, "acme", h, body)
	}
	require.NoError(t, nc.PublishMsg(&nats.Msg{Subject: "pinwheel.call.task.acme.w", Reply: "_INBOX.spied.call",
		Header: hostile, Data: []byte("call")}))

	replies := map[string]bool{}
	kinds := map[string]bool{}
	timeout := time.After(patience)
	for len(replies) < 3 || len(kinds) < 4 {
		select {
		case m := <-spy:
			token := strings.Split(m.Subject, ".")[1]
			if token == "call" || token == "events" && string(m.Data) != "call" {
				continue // what the owner itself has published
			}
			if strings.HasPrefix(m.Subject, "_INBOX.spied.") {
				replies[m.Subject] = true
			} else if token != "control" {
				kinds[token] = true
			}
			for name := range m.Header {
				lower := strings.ToLower(name)
				steers := strings.HasPrefix(lower, "nats-") || lower == "status" || lower == "description"
				require.False(t, steers && !slices.Contains(steering, name), "%s has header %s: %v", m.Subject, name, m.Header)
			}
			require.NotContains(t, m.Header["Nats-Msg-Id"], "stolen")
			require.NotContains(t, m.Header["Nats-Schedule"], "@every 1s")
		case <-timeout:
			t.Fatalf("replies %v, others %v", replies, kinds)
		}
	}
}
