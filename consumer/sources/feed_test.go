package sources

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// Messages of core subjects are lost when those that are being stored have many bytes. None are asked for.
func TestCoreMessagesAreBoundedInBytes(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	s := &Sources{}
	s.metrics = newMetrics(s)
	p := &pump{conn: &Conn{NC: nc}}
	f := &feed{s: s, pump: p, source: workers.Source{Subject: "a.>"}, flight: 9, size: 512 << 10}
	f.hear(&nats.Msg{Subject: "a.b"}, time.Now())
	require.Equal(t, 9, f.flight, "it was not taken")
	f.flight = 0
	f.ask(time.Now())
	require.Zero(t, f.credits)
}

// A source that is nearly as far ahead of its worker as it may be asks for no few messages. Of large ones a few are
// many.
func TestAFeedAsksForAQuarterOfAWindow(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	p := &pump{conn: &Conn{NC: nc}}
	f := &feed{pump: p, tally: tally{ahead: mostAhead - window/4 + 1, counting: true}}
	require.Zero(t, f.room(time.Now()))
	f.isAhead()
	require.Equal(t, condition{BacksOff, tooMany}, f.condition, "it asks for nothing, and says so")
	f.ahead--
	f.isAhead()
	require.Equal(t, condition{}, f.condition)
	require.Equal(t, window/4, f.room(time.Now()))
	f.ahead = 0
	require.Equal(t, window, f.room(time.Now()))
	f.size, f.ahead = 1<<20, 28
	require.Equal(t, 4, f.room(time.Now()), "at most 32 are ahead")
	f.ahead = 31
	require.Equal(t, 1, f.room(time.Now()))
}
