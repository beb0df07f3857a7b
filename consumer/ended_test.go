package consumer_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// Two processes have an event, because the first was paused for longer than a lease. When one has acked it, the other
// makes no dead letter of it.
func TestWhatWasAckedElsewhereGetsNoDeadLetter(t *testing.T) {
	t.Parallel()
	for name, lateFails := range map[string]bool{"the first comes back and fails": true, "the second fails": false} {
		t.Run(name, func(t *testing.T) {
			srv := natstest.Start(t)
			pub := natstest.Connect(t, srv)
			js := jetStream(t, pub)
			wire := &lossyDialer{lost: make(chan []byte, 1000), refuse: make(chan struct{})}
			nc, err := natstest.Dial(srv.URL(), nats.SetCustomDialer(wire), nats.MaxReconnects(-1),
				nats.ReconnectWait(time.Millisecond), nats.ReconnectJitter(0, 0))
			require.NoError(t, err)
			t.Cleanup(nc.Close)
			first, second := make(chan *lifecycle.Delivery, 4), make(chan *lifecycle.Delivery, 4)
			hold := func(into chan *lifecycle.Delivery) *dispatcher {
				return &dispatcher{handle: func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) { into <- e; return never(e) }}
			}
			d1, d2 := hold(first), hold(second)
			f1 := start(t, nc, shortLease(), d1)
			publish(t, pub, events.Task, "acme", nil, "x")
			e1 := <-first
			wire.block()
			f2 := start(t, natstest.Connect(t, srv), shortLease(), d2)
			e2 := <-second
			require.Equal(t, 2, e2.Origin.Deliveries)
			close(wire.refuse)
			require.Eventually(t, func() bool { return f1.Ready() == nil }, patience, time.Millisecond)

			end := func(f *fleet, d *dispatcher, e *lifecycle.Delivery, how handler) {
				s, _ := how(e)
				d.settle([]lifecycle.Settlement{s})
				require.Eventually(t, func() bool { return f.Stats().Held == 0 }, patience, time.Millisecond)
			}
			if lateFails {
				end(f2, d2, e2, ack)
				end(f1, d1, e1, dead)
			} else {
				end(f1, d1, e1, ack)
				end(f2, d2, e2, dead)
			}
			eventuallyStored(t, js, events.StreamEvents, 0)
			require.Zero(t, stored(t, js, events.StreamDead))
		})
	}
}
