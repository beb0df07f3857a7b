package consumer_test

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// lossyDialer makes connections that can be broken with what was written to them last.
type lossyDialer struct {
	mu   sync.Mutex
	conn net.Conn
	lose bool
	lost chan []byte // what was written while it loses

	blocked bool
	refuse  chan struct{} // closed when connections can be made again after block
}

type lossyConn struct {
	net.Conn
	d *lossyDialer
}

func (d *lossyDialer) Dial(network, address string) (net.Conn, error) {
	d.mu.Lock()
	blocked := d.blocked
	d.mu.Unlock()
	if blocked {
		<-d.refuse
	}
	c, err := net.Dial(network, address)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	d.conn, d.lose = c, false
	d.mu.Unlock()
	return &lossyConn{c, d}, nil
}

func (c *lossyConn) Write(b []byte) (int, error) {
	c.d.mu.Lock()
	lose := c.d.lose
	c.d.mu.Unlock()
	if lose {
		c.d.lost <- append([]byte(nil), b...)
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (d *lossyDialer) loseFromNow() {
	d.mu.Lock()
	d.lose = true
	d.mu.Unlock()
}

// block cuts and lets no connection be made until refuse is closed.
func (d *lossyDialer) block() {
	d.mu.Lock()
	d.blocked = true
	d.mu.Unlock()
	d.cut()
}

func (d *lossyDialer) cut() {
	d.mu.Lock()
	_ = d.conn.Close()
	d.mu.Unlock()
}

// A reply that was in the buffers of a connection when it broke is sent again before the ack, however long before the
// ack it was made.
func TestRepliesSurviveABrokenConnection(t *testing.T) {
	t.Parallel()
	for name, early := range map[string]bool{"reply before waitUntil": true, "reply with the verdict": false} {
		t.Run(name, func(t *testing.T) {
			srv := natstest.Start(t)
			pub := natstest.Connect(t, srv)
			wire := &lossyDialer{lost: make(chan []byte, 1000)}
			nc, err := natstest.Dial(srv.URL(), nats.SetCustomDialer(wire), nats.MaxReconnects(-1),
				nats.ReconnectWait(time.Millisecond), nats.ReconnectJitter(0, 0))
			require.NoError(t, err)
			t.Cleanup(nc.Close)
			cut := make(chan struct{})
			d := &dispatcher{}
			d.handle = func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
				s, _ := echo(e)
				wire.loseFromNow()
				if early {
					d.settle([]lifecycle.Settlement{{Event: e, Reply: s.Reply}})
					s.Reply = nil
				} else {
					s.Outcome.Verdict, s.Outcome.Failure = lifecycle.Dead, events.Fail(events.ReasonException, "boom")
					d.settle([]lifecycle.Settlement{s})
				}
				<-cut
				return s, early
			}
			start(t, nc, leased(2*time.Second), d)
			to, sub := inbox(t, pub)
			publish(t, pub, events.Task, "acme", nats.Header{"Reply-To": {to}}, "hello")
			<-wire.lost // the reply, or the lease
			reconnects := nc.Stats().Reconnects
			wire.cut()
			require.Eventually(t, func() bool { return nc.Stats().Reconnects > reconnects }, patience, time.Millisecond)
			close(cut)
			m, err := sub.NextMsg(patience)
			require.NoError(t, err)
			require.Equal(t, "hello", string(m.Data))
			eventuallyStored(t, jetStream(t, pub), "PINWHEEL_EVENTS", 0)
		})
	}
}
