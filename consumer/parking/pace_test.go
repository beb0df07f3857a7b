package parking

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func ofWaiting(n int) *pace { return &pace{waiting: make([]parkable, n)} }

// The next round begins when the one before was answered, and half of the time that took later.
func TestParksGoInRounds(t *testing.T) {
	p, now := ofWaiting(2*parkRound+1), time.Now()
	require.Len(t, p.take(now), parkRound)
	require.Empty(t, p.take(now))
	now = now.Add(40 * time.Millisecond)
	for range parkRound {
		require.Empty(t, p.take(now))
		p.answered(p.round, now)
	}
	require.Empty(t, p.take(now.Add(20*time.Millisecond-1)))
	require.Len(t, p.take(now.Add(20*time.Millisecond)), parkRound)
	require.Len(t, p.waiting, 1)
}

// A lost answer keeps the next round waiting for a while only, and what then comes of the round before makes no
// difference.
func TestLostAnswerHoldsUpNoRound(t *testing.T) {
	p, now := ofWaiting(parkRound+2), time.Now()
	require.Len(t, p.take(now), parkRound)
	late := p.round
	require.Empty(t, p.take(now.Add(parkRoundWait-1)))
	now = now.Add(parkRoundWait)
	require.Len(t, p.take(now), 2)
	p.waiting = make([]parkable, 1)
	for range parkRound {
		p.answered(late, now)
	}
	require.Empty(t, p.take(now), "the present round is not over")
	p.answered(p.round, now)
	p.answered(p.round, now)
	require.Len(t, p.take(now), 1)
}
