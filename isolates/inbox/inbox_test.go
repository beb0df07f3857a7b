package inbox

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// What comes is there to be taken, once, and wakes the thread.
func TestTake(t *testing.T) {
	b := Inbox[int, string]{Wake: make(chan struct{}, 1)}
	require.False(t, b.Full())
	b.Put(1)
	b.Put(2)
	a := &lifecycle.Attempt{}
	require.True(t, b.Forward(a))
	require.True(t, b.AddReturned("turn"))
	require.Len(t, b.Wake, 1)
	require.True(t, b.Full())
	require.Equal(t, 2, b.Calls())
	var waiting []*lifecycle.Attempt
	calls, forwarded, returned := b.Take(&waiting)
	require.Equal(t, []int{1, 2}, calls)
	require.Equal(t, 1, forwarded)
	require.Equal(t, []string{"turn"}, returned)
	require.Equal(t, []*lifecycle.Attempt{a}, waiting)
	require.False(t, b.Full())
}

// A thread that ends takes no attempts and no turns. What it has not taken is given back.
func TestEnd(t *testing.T) {
	b := Inbox[int, string]{Wake: make(chan struct{}, 1)}
	a := &lifecycle.Attempt{}
	require.True(t, b.Forward(a))
	require.Equal(t, []*lifecycle.Attempt{a}, b.Refuse())
	require.Empty(t, b.Refuse())
	require.False(t, b.Forward(a))
	require.True(t, b.AddReturned("late"))
	require.Equal(t, []string{"late"}, b.Close())
	require.False(t, b.AddReturned("later"))
	b.Put(3)
	require.Equal(t, []int{3}, b.Lost())
}
