package consumer_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// full are headers that come to about so many bytes.
func full(name string, each, size int) nats.Header {
	h := nats.Header{}
	for i, n := 0, 0; ; i++ {
		key := fmt.Sprintf("%s%d", name, i)
		if n += len(key) + 4 + each; n > size {
			return h
		}
		h[key] = []string{strings.Repeat("x", each)}
	}
}

// An event whose headers leave no room for those of a letter, of a parked or of a delayed event ends all the same. Its
// headers and its body are kept. It does not run if it could not be parked or delayed.
func TestEventsOfManyHeadersEnd(t *testing.T) {
	t.Parallel()
	const most, allowed = 65000, events.MaxEventHeaders - 100 // JetStream stores 64 KiB
	for name, c := range map[string]struct {
		header nats.Header
		reason events.Reason
	}{
		"large":            {full("X-", 8000, most), events.ReasonMalformed},
		"many":             {full("X", 1, most), events.ReasonMalformed},
		"steering":         {full("Nats-X", 1, most), events.ReasonException},
		"dead":             {full("Dead-X", 1, most), events.ReasonMalformed},
		"parked":           {full("Parked-X", 1, most), events.ReasonMalformed},
		"large, and fit":   {full("X-", 8000, allowed), events.ReasonException},
		"many that fit":    {full("X", 1, allowed), events.ReasonException},
		"dead that fit":    {full("Dead-X", 1, allowed), events.ReasonException},
		"parked, and fit":  {full("Parked-X", 50, allowed*3/4), events.ReasonException},
		"parked, one more": {full("Parked-X", 50, allowed), events.ReasonMalformed},
	} {
		h := c.header
		t.Run(name, func(t *testing.T) {
			nc := connect(t)
			js := jetStream(t, nc)
			failure := events.NewFailure(events.ReasonException, strings.Repeat("m", 3000), strings.Repeat("\n", 8000))
			attempts := map[string]int{}
			d := &dispatcher{inline: true, handle: func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
				o := lifecycle.Outcome{Verdict: lifecycle.Dead, Version: "1-abc", Failure: failure}
				attempts[string(e.Body)]++
				switch body := string(e.Body); {
				case body == "park" && !e.Parked:
					return park(e)
				case body == "later" && attempts[body] == 1:
					o.Verdict, o.Delay = lifecycle.Retry, 10*time.Millisecond
				}
				return lifecycle.Settlement{Event: e, Outcome: o}, true
			}}
			cfg := testConfig()
			cfg.LongRetry = 0
			start(t, nc, cfg, d)
			for i, body := range []string{"dies", "park", "later"} {
				publish(t, nc, events.Task, "acme", h, body)
				eventuallyStored(t, js, events.StreamDead, i+1)
			}
			eventuallyStored(t, js, events.StreamEvents, 0)
			eventuallyStored(t, js, events.StreamParked, 0)
			all := letters(t, deadletter.NewStore(js, subjects), deadletter.Filter{})
			require.Len(t, all, 3)
			for i, body := range []string{"dies", "park", "later"} {
				require.Equal(t, body, string(all[i].Body))
				require.Equal(t, c.reason, all[i].Failure.Reason)
				if _, lost := h["Nats-X0"]; lost && body != "dies" {
					continue // they steered NATS, and were left out to make room
				}
				kept := maps.Clone(all[i].Header)
				maps.DeleteFunc(kept, func(name string, _ []string) bool { return strings.HasPrefix(name, "Nats-Expected-") })
				require.Equal(t, events.Header(h), kept)
			}
		})
	}
}

// The server takes smaller messages than when the event was stored. The event stays in its stream: it is given back
// with a delay. Its dead letter is written once it fits.
func TestLetterThatFitsNoMessageIsNotLost(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	js := jetStream(t, nc)
	cfg := testConfig()
	require.NoError(t, consumer.CreateAssets(t.Context(), js, cfg, nc.MaxPayload()))
	publish(t, nc, events.Task, "acme", nil, strings.Repeat("b", 900<<10))
	stream, err := js.Stream(t.Context(), events.StreamEvents)
	require.NoError(t, err)
	wider := stream.CachedInfo().Config
	wider.MaxMsgSize = -1
	_, err = js.UpdateStream(t.Context(), wider)
	require.NoError(t, err)
	publish(t, nc, events.Task, "acme", nil, strings.Repeat("b", 1<<20-200)) // as before the limit was lowered
	start(t, nc, cfg, &dispatcher{handle: dead})
	eventuallyStored(t, js, events.StreamDead, 1)
	require.Eventually(t, func() bool {
		lane, err := js.Consumer(t.Context(), events.StreamEvents, firstLane(t, js))
		return err == nil && lane.CachedInfo().NumAckPending == 1 && lane.CachedInfo().NumRedelivered == 0
	}, patience, 10*time.Millisecond)
	eventuallyStored(t, js, events.StreamEvents, 1)
}

// laneOf is the consumer of the lane that something is in.
func firstLane(t *testing.T, js jetstream.JetStream) string {
	t.Helper()
	s, err := js.Stream(t.Context(), events.StreamEvents)
	require.NoError(t, err)
	m, err := s.GetMsg(t.Context(), 1, jetstream.WithGetMsgSubject(subjects.AllStored()))
	require.NoError(t, err)
	lane, _, _, _, ok := subjects.ParseStored(m.Subject)
	require.True(t, ok)
	return fmt.Sprintf("lane-%d", lane)
}

// An event was stored when the server took longer messages. A request allows fewer bytes than it has, and then more.
func TestEventsLongerThanTheServerTakesRun(t *testing.T) {
	t.Parallel()
	dir := natstest.StoreDir(t)
	serve := func(maxPayload int32) (*nats.Conn, func()) {
		url, stop := natstest.StartIn(t, dir, maxPayload)
		nc, err := natstest.Dial(url)
		require.NoError(t, err)
		t.Cleanup(nc.Close)
		return nc, stop
	}
	cfg := testConfig()
	nc, stop := serve(8 << 20)
	require.NoError(t, consumer.CreateAssets(t.Context(), jetStream(t, nc), cfg, nc.MaxPayload()))
	publish(t, nc, events.Task, "acme", nil, strings.Repeat("b", 5<<20))
	publish(t, nc, events.Task, "acme", nil, "behind it")
	nc.Close()
	stop()

	nc, _ = serve(1 << 20)
	require.EqualValues(t, 1<<20, nc.MaxPayload())
	d := &dispatcher{handle: ack}
	start(t, nc, cfg, d)
	eventuallyStored(t, jetStream(t, nc), events.StreamEvents, 0)
	require.Len(t, d.events(), 2)
}
