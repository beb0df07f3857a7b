package main

import (
	"bytes"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// TestRollout rolls out a good and a bad version. The process that makes a step is killed.
func TestRollout(t *testing.T) {
	t.Parallel()
	path, err := pinwheelBinary()
	require.NoError(t, err)
	o := defaultRolloutOptions()
	o.pinwheel, o.stores = path, natstest.StoreDir(t)
	o.rate, o.keys, o.fleet, o.steps, o.failures, o.kill = 100, 50, 2, "20%,50%@1s", 20, true
	require.NoError(t, o.check())
	var out bytes.Buffer
	require.NoError(t, measureRollouts(t.Context(), &out, o), out.String())
	require.Contains(t, out.String(), "good version: the command took ")
	require.Contains(t, out.String(), "  done after ")
	require.Contains(t, out.String(), "  rolled-back after ")
	require.Contains(t, out.String(), " 0 moved back")
	t.Log(out.String())
}

func TestRolloutOptions(t *testing.T) {
	t.Parallel()
	o := defaultRolloutOptions()
	require.NoError(t, o.check())
	o.failures = 101
	require.ErrorContains(t, o.check(), "--failures 101: it is above 0, at most 100")
}

// A reply of the same attempt is a fault, unless a process may have been killed before the ack of the first one.
func TestRepliesOfARollout(t *testing.T) {
	t.Parallel()
	for _, kill := range []bool{false, true} {
		s := newRolloutSheet(1, kill)
		subject := s.publishing(0)
		reply := func(attempt string) int {
			s.take(&nats.Msg{Subject: subject, Header: nats.Header{events.HeaderAttempt: {attempt}}})
			return len(s.faults)
		}
		require.Zero(t, reply("2"))
		require.Equal(t, kill, reply("2") == 0)
		before := len(s.faults)
		require.Equal(t, before, reply("3"))
		require.Equal(t, before+1, reply("1"))
	}
}
