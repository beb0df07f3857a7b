package consumer_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer/attempts"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
	"github.com/pinwheel-run/pinwheel/internal/process/crashnote"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// Each process dies in another state of the event. Only those that died while it was noted to run count, and not those
// that somebody killed.
func TestCrashesOfWatchedRunsAreCounted(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	pub := natstest.Connect(t, srv)
	type state struct {
		crashes int
		alone   bool
	}
	type note struct {
		running, alone   bool
		failed, returned int
	}
	watch, watchAlone := lifecycle.Settlement{Order: lifecycle.Watch}, lifecycle.Settlement{Order: lifecycle.WatchAlone}
	share, returned := lifecycle.Settlement{Order: lifecycle.Share}, lifecycle.Settlement{Order: lifecycle.Return}
	acked := lifecycle.Settlement{Outcome: lifecycle.Outcome{Verdict: lifecycle.Ack}}
	retry := lifecycle.Settlement{Outcome: lifecycle.Outcome{
		Verdict: lifecycle.Retry,
		Delay:   4 * time.Second, // a longer one is kept in JetStream
	}}
	processes := []struct {
		name string
		is   state // of the event when it comes
		do   []lifecycle.Settlement
		dies *note // in the record when the process dies; nil: the process stores none
		of   crashnote.Cause
	}{
		{"it may have run", state{}, nil, nil, crashnote.Unknown},
		{"it only waits", state{1, false}, nil, nil, crashnote.Unknown},
		{"it runs", state{1, false}, []lifecycle.Settlement{watch}, &note{running: true}, crashnote.Unknown},
		{"it only waits again", state{2, false}, nil, nil, crashnote.Fault},
		{"it is alone, and no more", state{2, false}, []lifecycle.Settlement{watchAlone, share},
			&note{running: true}, crashnote.Fault},
		{"it is returned", state{3, false}, []lifecycle.Settlement{watchAlone, returned}, &note{returned: 1},
			crashnote.Fault},
		{"it fails, and waits for its retry", state{3, false}, []lifecycle.Settlement{watchAlone, retry},
			&note{returned: 1, failed: 1}, crashnote.Fault},
		{"it is alone, and somebody kills", state{3, false}, []lifecycle.Settlement{watchAlone},
			&note{returned: 1, failed: 1, running: true, alone: true}, crashnote.Outside},
		{"so again", state{3, false}, []lifecycle.Settlement{watchAlone}, &note{returned: 1, failed: 1, running: true,
			alone: true}, crashnote.Outside},
		{"it is alone, and its machine vanishes", state{3, false}, []lifecycle.Settlement{watchAlone},
			&note{returned: 1, failed: 1, running: true, alone: true}, crashnote.Unknown},
		{"it is alone, and the memory ends", state{4, false}, []lifecycle.Settlement{watchAlone},
			&note{returned: 1, failed: 1, running: true, alone: true}, crashnote.Memory},
		{"it ends", state{5, true}, []lifecycle.Settlement{watchAlone, acked}, nil, crashnote.Unknown},
	}
	js := jetStream(t, pub)
	noted := func(bucket jetstream.Stream) (n note, err error) {
		// Not the last message of the whole bucket: a process whose stores take long puts a probe there.
		m, err := bucket.GetLastMsgForSubject(t.Context(), "$KV."+events.BucketAttempts+"."+events.StreamEvents+".*")
		if err != nil {
			return n, nil
		}
		var r attempts.Record
		err = json.Unmarshal(m.Data, &r)
		return note{r.Running, r.Alone, r.Failed, r.Returned}, err
	}
	for i, p := range processes {
		nc := natstest.Connect(t, srv)
		came, done := make(chan state, 8), make(chan struct{})
		step := 0
		d := &dispatcher{inline: true}
		d.handle = func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
			if step == 0 {
				came <- state{e.Crashes, e.CrashedAlone}
			} else if !e.Watched {
				return lifecycle.Settlement{}, false // returned, and back
			}
			for step < len(p.do) {
				s := p.do[step]
				s.Event = e
				step++
				if s.Order == lifecycle.Share {
					d.settle([]lifecycle.Settlement{s})
					continue
				}
				if s.Order != lifecycle.Watch && s.Order != lifecycle.WatchAlone {
					defer close(done)
				}
				return s, true
			}
			close(done)
			return lifecycle.Settlement{}, false
		}
		cfg := shortLease()
		cfg.LongRetry = 2 * time.Hour // so that it waits here
		cfg.Instance = fmt.Sprint("P", i)
		if i > 0 && processes[i-1].of != crashnote.Unknown {
			cfg.Ended = []crashnote.Ended{{Instance: fmt.Sprint("P", i-1), Cause: processes[i-1].of}}
		}
		start(t, nc, cfg, d)
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
		if p.dies != nil {
			bucket, err := js.Stream(t.Context(), resources.BucketStream(events.BucketAttempts))
			require.NoError(t, err)
			var broken error
			require.Eventually(t, func() bool {
				var n note
				n, broken = noted(bucket)
				return broken != nil || n == *p.dies
			}, patience, time.Millisecond, p.name)
			require.NoError(t, broken)
		}
		if p.name == "it ends" {
			eventuallyStored(t, js, events.StreamEvents, 0)
		}
		nc.Close()
	}
}
