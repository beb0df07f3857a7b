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

func settlement(e *events.Event, v lifecycle.Verdict, alone bool) lifecycle.Settlement {
	return lifecycle.Settlement{Event: e, Outcome: lifecycle.Outcome{Verdict: v, Alone: alone}}
}

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
	processes := []struct {
		name string
		is   state // of the event when it comes
		do   []lifecycle.Verdict
		with bool  // alone
		dies *note // in the record when the process dies; nil: the process stores none
		of   crashnote.Cause
	}{
		{"it may have run", state{}, nil, false, nil, crashnote.Unknown},
		{"it only waits", state{1, false}, nil, false, nil, crashnote.Unknown},
		{"it runs", state{1, false}, []lifecycle.Verdict{lifecycle.Watch}, false, &note{running: true}, crashnote.Unknown},
		{"it only waits again", state{2, false}, nil, false, nil, crashnote.Fault},
		{"it is alone, and no more", state{2, false}, []lifecycle.Verdict{lifecycle.Watch, lifecycle.Share}, true,
			&note{running: true}, crashnote.Fault},
		{"it is returned", state{3, false}, []lifecycle.Verdict{lifecycle.Watch, lifecycle.Return}, true, &note{returned: 1},
			crashnote.Fault},
		{"it fails, and waits for its retry", state{3, false}, []lifecycle.Verdict{lifecycle.Watch, lifecycle.Retry}, true,
			&note{returned: 1, failed: 1}, crashnote.Fault},
		{"it is alone, and somebody kills", state{3, false}, []lifecycle.Verdict{lifecycle.Watch}, true,
			&note{returned: 1, failed: 1, running: true, alone: true}, crashnote.Outside},
		{"so again", state{3, false}, []lifecycle.Verdict{lifecycle.Watch}, true, &note{returned: 1, failed: 1, running: true,
			alone: true}, crashnote.Outside},
		{"it is alone, and its machine vanishes", state{3, false}, []lifecycle.Verdict{lifecycle.Watch}, true,
			&note{returned: 1, failed: 1, running: true, alone: true}, crashnote.Unknown},
		{"it is alone, and the memory ends", state{4, false}, []lifecycle.Verdict{lifecycle.Watch}, true,
			&note{returned: 1, failed: 1, running: true, alone: true}, crashnote.Memory},
		{"it ends", state{5, true}, []lifecycle.Verdict{lifecycle.Watch, lifecycle.Ack}, true, nil, crashnote.Unknown},
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
		d.handle = func(e *events.Event) (lifecycle.Settlement, bool) {
			if step == 0 {
				came <- state{e.Crashes, e.CrashedAlone}
			} else if !e.Watched {
				return lifecycle.Settlement{}, false // returned, and back
			}
			for step < len(p.do) {
				v := p.do[step]
				step++
				s := settlement(e, v, p.with)
				if v == lifecycle.Retry {
					s.Outcome.Delay = 4 * time.Second // a longer one is kept in JetStream
				}
				if v == lifecycle.Share {
					d.settle([]lifecycle.Settlement{s})
					continue
				}
				if v != lifecycle.Watch {
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
