package jsapi

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// ofWaiting returns Rounds in which each of the owners has n messages.
func ofWaiting(n int, owners ...string) *Rounds {
	r := NewRounds(nil)
	for _, owner := range owners {
		for range n {
			r.lines.Push(owner, func(func()) {})
		}
	}
	return r
}

// An owner with a backlog does not delay others.
func TestOwnersTakeTurnsInRounds(t *testing.T) {
	r := ofWaiting(3*roundMost, "many")
	began := 0
	for range 2 {
		r.lines.Push("few", func(func()) { began++ })
	}
	for _, begin := range r.take(time.Now()) {
		begin(nil)
	}
	require.Equal(t, 2, began)
	require.Equal(t, 1, r.lines.Owners())
	require.Equal(t, 3*roundMost-(roundMost-2), r.lines.Waiting("many"))
}

// The next round begins when the one before was answered, and half of the time that took later.
func TestBacklogIsStoredInRounds(t *testing.T) {
	p, now := ofWaiting(2*roundMost+1, "a"), time.Now()
	require.Len(t, p.take(now), roundMost)
	require.Empty(t, p.take(now))
	now = now.Add(40 * time.Millisecond)
	for range roundMost {
		require.Empty(t, p.take(now))
		p.answered(p.round, now)
	}
	require.Empty(t, p.take(now.Add(20*time.Millisecond-1)))
	require.Len(t, p.take(now.Add(20*time.Millisecond)), roundMost)
	require.Equal(t, 1, p.lines.Waiting("a"))
}

// A lost answer keeps the next round waiting for a while only, and what then comes of the round before makes no
// difference.
func TestLostAnswerHoldsUpNoRound(t *testing.T) {
	p, now := ofWaiting(roundMost+2, "a"), time.Now()
	require.Len(t, p.take(now), roundMost)
	late := p.round
	require.Empty(t, p.take(now.Add(roundWait-1)))
	now = now.Add(roundWait)
	require.Len(t, p.take(now), 2)
	p.lines.Push("a", func(func()) {})
	for range roundMost {
		p.answered(late, now)
	}
	require.Empty(t, p.take(now), "the present round is not over")
	p.answered(p.round, now)
	p.answered(p.round, now)
	require.Len(t, p.take(now), 1)
}
