package callqueue

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// round serves each owner once. Each call takes the given CPU time.
func round(q *Queue[string], cpu time.Duration) (done []string) {
	for n := q.Len(); n > 0; n-- {
		o := q.NextOwner()
		for o.MayCall() {
			done = append(done, o.Pop())
			o.Charge(cpu)
		}
		q.Served(o)
	}
	return done
}

// Each owner gets the same CPU time in a round, however many calls it has.
func TestOwnersTakeTurns(t *testing.T) {
	var q Queue[string]
	for _, c := range []string{"a1", "a2", "a3"} {
		q.Add("a", c)
	}
	q.Add("b", "b1")
	require.True(t, q.Wait())
	require.Equal(t, []string{"a1", "b1"}, round(&q, quantum))
	var left []string
	q.All(func(c string) { left = append(left, c) })
	require.Equal(t, []string{"a2", "a3"}, left)
	require.Equal(t, []string{"a2"}, round(&q, quantum))
	require.Equal(t, []string{"a3"}, round(&q, quantum))
	require.False(t, q.Wait())
	require.Zero(t, q.Len(), "owners without calls and debts are forgotten")
}

// An owner whose call took long waits until it has no debt. When nobody else has calls, its debt is forgiven.
func TestDebtsArePaidOrForgiven(t *testing.T) {
	var q Queue[string]
	q.Add("a", "a1")
	q.Add("b", "b1")
	require.Equal(t, []string{"a1", "b1"}, round(&q, 3*quantum))
	require.False(t, q.Wait())
	require.Equal(t, 2, q.Len(), "they are in debt")
	q.Add("a", "a2")
	require.Empty(t, round(&q, 0), "it pays")
	require.True(t, q.ForgiveDebts())
	require.Equal(t, 1, q.Len(), "b has no calls")
	require.Equal(t, []string{"a2"}, round(&q, 0))
	require.False(t, q.ForgiveDebts())
}
