package consumer

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// A process that got no processor for a while takes no lane for silent.
func TestStarvedProcessTakesNoLaneForSilent(t *testing.T) {
	t.Parallel()
	nc, err := natstest.Dial(natstest.Start(t).URL() + "," + natstest.Start(t).URL())
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	cfg := DefaultConfig()
	cfg.Node = "test"
	c, err := New(cfg, nc, &holder{}, zerolog.Nop(), nil)
	require.NoError(t, err)
	p, now := c.puller, time.Now()
	l := p.lanes[0]
	asked := func(heard time.Time) {
		l.inbox = nc.NewInbox()
		l.sub, err = nc.ChanSubscribe(l.inbox, p.msgs)
		require.NoError(t, err)
		p.subs[l.sub] = l
		l.credits, p.total, l.heard, p.beaten = 1, 1, heard, now
	}
	stalls := func(heard time.Duration, beat time.Duration) int64 {
		was := p.stalls.Load()
		asked(now.Add(heard))
		p.beat(now.Add(beat))
		return p.stalls.Load() - was
	}
	patience := time.Duration(laneSilence * float64(cfg.Heartbeat))
	interval := cfg.Heartbeat / 2
	require.Zero(t, stalls(interval-patience, interval))
	require.EqualValues(t, 1, stalls(interval-patience-1, interval), "nothing has come")
	require.Zero(t, stalls(interval-patience, interval+time.Hour), "the beat itself came an hour late")
	require.EqualValues(t, 1, stalls(interval-patience-1, interval+time.Hour))
	require.Zero(t, stalls(2*interval-patience, interval+time.Hour))
	stalled := p.stalls.Load()
	p.beat(now.Add(2*interval + time.Hour))
	require.Equal(t, stalled, p.stalls.Load(), "the beat after that does not count the hour either")
	require.Equal(t, serverSilence, p.silenceLimit, "nor does it connect to another server")

	asked(now.Add(-time.Hour))
	require.NoError(t,
		nc.PublishMsg(&nats.Msg{Subject: l.inbox, Header: nats.Header{"Status": {"100"}, "Description": {"Idle Heartbeat"}}}))
	require.Eventually(t, func() bool { return len(p.msgs) == 1 }, time.Minute, time.Millisecond)
	stalled = p.stalls.Load()
	p.beat(now.Add(interval))
	require.Equal(t, stalled, p.stalls.Load(), "a heartbeat has arrived, and nobody had read it")
	require.WithinDuration(t, time.Now(), l.heard, time.Minute)
}
