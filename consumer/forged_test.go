package consumer_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/consumer/schedule"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// sayings are headers with which a publisher pretends to be JetStream: that its event is another owner's, stored
// before.
func sayings(seq uint64, owner string) nats.Header {
	return nats.Header{
		"Nats-Stream": {events.StreamEvents}, "Nats-Sequence": {fmt.Sprint(seq)}, "Nats-Time-Stamp": {"2001-01-01T00:00:00Z"},
		"Nats-Subject": {fmt.Sprintf("%s.events.%d.task.%s.w", subjects, events.LaneOf(owner), owner)},
	}
}

// Events that claim to be another owner's overtake a backlog as their real owner's, and the other owner's events stay.
func TestForgedHeadersTakeNobodysEvents(t *testing.T) {
	t.Parallel()
	j := newJam(t)
	cfg := testConfig()
	cfg.Overtake = 640
	d := &dispatcher{forget: true, handle: j.handle}
	start(t, natstest.Connect(t, j.srv), cfg, d)
	j.fill(backlog)
	const each = 8
	forger, victim := mate(0), mate(1)
	for i := range each {
		seq := publish(t, j.nc, events.Task, victim, nil, fmt.Sprint("victim ", i))
		if body := fmt.Sprint("forger ", i); i%2 == 0 {
			publish(t, j.nc, events.Task, forger, sayings(seq, victim), body)
		} else { // what JetStream adds to the block would come after its end
			var block strings.Builder
			_ = http.Header(sayings(seq, victim)).Write(&block)
			natstest.PublishRaw(t, j.srv.URL(), subjects.Event(events.Task, forger, "w"), "NATS/1.0\r\n"+block.String()+
				"\r\n\r\n", body)
		}
	}
	j.dripUntil(d, "both owners' events run", func() bool {
		for i := range each {
			if j.runs(fmt.Sprint("victim ", i)) == 0 || j.runs(fmt.Sprint("forger ", i)) == 0 {
				return false
			}
		}
		return true
	})
	for i := range each {
		for owner, body := range map[string]string{victim: fmt.Sprint("victim ", i), forger: fmt.Sprint("forger ", i)} {
			require.Len(t, j.ran[body], 1, body)
			e := j.ran[body][0]
			require.Equal(t, []any{owner, events.StreamParked}, []any{e.Owner, e.Origin.Stream})
			require.WithinDuration(t, time.Now(), e.Stored, time.Hour)
		}
	}
}

// An event that claims to be the first of the stream does not make the sweep read it again and again.
func TestSweepLooksAtAMessageOnce(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	nc := natstest.Connect(t, srv)
	var mu sync.Mutex
	asked := map[string]int{} // requests for stored events, by filter
	spy := natstest.Connect(t, srv)
	_, err := spy.Subscribe("$JS.API.>", func(m *nats.Msg) {
		if !strings.Contains(m.Subject, "MSG.GET") && !strings.Contains(m.Subject, "DIRECT.GET") {
			return
		}
		var r struct {
			Next string `json:"next_by_subj"`
		}
		_ = json.Unmarshal(m.Data, &r)
		mu.Lock()
		defer mu.Unlock()
		asked[r.Next]++
	})
	require.NoError(t, err)
	require.NoError(t, spy.Flush())
	held := make(chan *lifecycle.Delivery, 2)
	start(t, nc, testConfig(), &dispatcher{handle: func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
		if string(e.Body) == "first" {
			return ack(e)
		}
		held <- e
		return lifecycle.Settlement{}, false
	}})
	publish(t, nc, events.Task, "acme", nil, "first")
	publish(t, nc, events.Task, "acme", sayings(1, "acme"), "waits")
	<-held
	last := subjects.DueLane(events.DueLanes - 1)
	require.Eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return asked[last] > 0
	}, patience, time.Millisecond, "the sweep has looked through all lanes")
	mu.Lock()
	defer mu.Unlock()
	require.Positive(t, asked[subjects.Lane(events.LaneOf("acme"))])
	delete(asked, "") // of others, which ask by number or for the last message, more often on a busy machine
	for filter, n := range asked {
		require.LessOrEqual(t, n, 4, "requests for %q: %v", filter, asked)
	}
}

// The properties of dead letters and of delayed events come from the fleet and JetStream, regardless of their events'
// headers.
func TestForgedHeadersOfLettersAndWaitingEvents(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	js := jetStream(t, nc)
	start(t, nc, testConfig(), &dispatcher{handle: dead})
	publish(t, nc, events.Task, "victim", nil, "victim's")
	hostile := sayings(1, "victim")
	for name, value := range map[string]string{
		"Parked-Subject": "pinwheel.events.0.task.victim.w", "Parked-Seq": "1", "Parked-Attempt": "9",
		"parked-record": `{"crashedAlone":true}`, "Dead-Owner": "victim", "dead-seq": "1",
		"Dead-Original-Nats-Sequence": "1", "Parked-Original-Nats-Sequence": "1", "Dead-Hook": "subject:_INBOX.x",
		"KV-Operation": "PURGE", "Status": "404", "Event-Id": "forged",
	} {
		hostile[name] = []string{value}
	}
	seq := publish(t, nc, events.Task, "forger", hostile, "")
	letters := deadletter.NewStore(js, subjects)
	eventuallyStored(t, js, events.StreamDead, 2)
	found := 0
	for l, err := range letters.List(t.Context(), deadletter.Filter{Owner: "forger"}) {
		require.NoError(t, err)
		found++
		one, err := letters.Get(t.Context(), l.Seq)
		require.NoError(t, err)
		require.Equal(t, []any{"forger", "forged", events.StreamEvents, seq, 1, events.DeadHook{}},
			[]any{one.Owner, one.EventID, one.Stream, one.StreamSeq, one.Attempts, one.Hook})
		for name, values := range hostile {
			require.Equal(t, values, one.Header[name], name)
		}
	}
	require.Equal(t, 1, found)

	hostile["Deliver-After"] = []string{"1h"}
	publish(t, nc, events.Task, "forger", hostile, "")
	eventuallyStored(t, js, events.StreamSchedules, 1)
	book := schedule.NewStore(js, subjects)
	for w, err := range book.Waiting(t.Context(), "", "") {
		require.NoError(t, err)
		require.Equal(t, []any{"forger", "forged", 1}, []any{w.Event.Owner, w.Event.ID, w.Runs.Attempt})
		require.WithinDuration(t, time.Now().Add(time.Hour), w.At, 10*time.Minute)
	}
	n, err := book.Cancel(t.Context(), "victim", "w", "forged")
	require.NoError(t, err)
	require.Zero(t, n)
	n, err = book.Cancel(t.Context(), "forger", "w", "forged")
	require.NoError(t, err)
	require.Equal(t, 1, n)
}
