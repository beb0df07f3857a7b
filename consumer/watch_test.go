package consumer_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/natstest"
)

func settlement(e *events.Event, v events.Verdict, alone bool) events.Settlement {
	return events.Settlement{Event: e, Outcome: events.Outcome{Verdict: v, Alone: alone}}
}

// Each process dies in another state of the event. Only those that died while it was noted to run count.
func TestCrashesOfWatchedRunsAreCounted(t *testing.T) {
	srv := natstest.Start(t)
	pub := natstest.Connect(t, srv)
	type state struct {
		crashes int
		alone   bool
	}
	processes := []struct {
		name string
		is   state // of the event when it comes
		do   []events.Verdict
		with bool // alone
	}{
		{"it may have run", state{}, nil, false},
		{"it only waits", state{1, false}, nil, false},
		{"it runs", state{1, false}, []events.Verdict{events.Watch}, false},
		{"it only waits again", state{2, false}, nil, false},
		{"it is alone, and no more", state{2, false}, []events.Verdict{events.Watch, events.Share}, true},
		{"it is returned", state{3, false}, []events.Verdict{events.Watch, events.Return}, true},
		{"it fails, and waits for its retry", state{3, false}, []events.Verdict{events.Watch, events.Retry}, true},
		{"it is alone", state{3, false}, []events.Verdict{events.Watch}, true},
		{"it ends", state{4, true}, []events.Verdict{events.Watch, events.Ack}, true},
	}
	for i, p := range processes {
		nc := natstest.Connect(t, srv)
		came, done := make(chan state, 8), make(chan struct{})
		step := 0
		d := &dispatcher{inline: true}
		d.handle = func(e *events.Event) (events.Settlement, bool) {
			if step == 0 {
				came <- state{e.Crashes, e.CrashedAlone}
			} else if !e.Watched {
				return events.Settlement{}, false // returned, and back
			}
			for step < len(p.do) {
				v := p.do[step]
				step++
				s := settlement(e, v, p.with)
				if v == events.Retry {
					s.Outcome.Delay = 4 * time.Second // a longer one is kept in JetStream
				}
				if v == events.Share {
					d.settle([]events.Settlement{s})
					continue
				}
				if v != events.Watch {
					defer close(done)
				}
				return s, true
			}
			close(done)
			return events.Settlement{}, false
		}
		cfg := shortLease()
		cfg.LongRetry = 2 * time.Hour // so that it waits here
		f := start(t, nc, cfg, d)
		if i == 0 {
			publish(t, pub, events.Task, "acme", nil, "x")
		}
		select {
		case s := <-came:
			require.Equal(t, p.is, s, p.name)
		case <-time.After(patience):
			t.Fatal(p.name, ": the event does not come")
		}
		<-done
		require.Eventually(t, func() bool { return f.Stats().Settling == 0 }, patience, time.Millisecond)
		require.NoError(t, nc.Flush()) // records that nobody waits for are stored
		_, err := nc.Request("$JS.API.INFO", nil, patience)
		require.NoError(t, err)
		nc.Close()
	}
	eventuallyStored(t, jetStream(t, pub), consumer.StreamEvents, 0)
}
