package cancel

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What is forbidden is so until it is released or its time is over, and another event under the same number is another.
func TestNotes(t *testing.T) {
	t.Parallel()
	var n Notes
	now := time.Now()
	id := ID{"S", 7, 1}
	is := func(id ID, at time.Time) bool { is, _ := n.IsForbidden(id, at); return is }
	require.False(t, is(id, now))
	n.Forbid([]ID{id}, All, now)
	require.True(t, is(id, now))
	require.False(t, is(ID{"S", 7, 2}, now), "of a stream that was created again")
	require.False(t, is(id, now.Add(forbiddenFor)))
	n.Forbid([]ID{id}, Released, now)
	require.False(t, is(id, now))
	n.Forbid([]ID{id}, Deleted, now)
	_, silent := n.IsForbidden(id, now)
	require.True(t, silent)
	n.End(id, Cancelled, now)
	require.Equal(t, Cancelled, n.HowEnded(id))
	n.Forget(now.Add(endedFor))
	require.Equal(t, Absent, n.HowEnded(id))
	require.False(t, n.Any())
}

// However many are cancelled, a process knows a bounded number: the last ones.
func TestNotesAreBounded(t *testing.T) {
	t.Parallel()
	var n Notes
	now := time.Now()
	for i := range 2 * most {
		id := ID{"S", uint64(i), 1}
		n.Forbid([]ID{id}, Deleted, now)
		n.End(id, Cancelled, now)
	}
	require.LessOrEqual(t, len(n.forbidden), most+1)
	require.LessOrEqual(t, len(n.ended), most+1)
	is, _ := n.IsForbidden(ID{"S", 2*most - 1, 1}, now)
	require.True(t, is)
}

// A fast purge does not make a process forget what others forbid: it takes one place for each event while it asks, and
// none soon after.
func TestPurgesEvictNothing(t *testing.T) {
	t.Parallel()
	var n Notes
	now := time.Now()
	mine := ID{"T", 1, 1}
	n.Forbid([]ID{mine}, All, now)
	for i := range 2 * most { // in 20 seconds
		id := ID{"S", uint64(i), 1}
		at := now.Add(time.Duration(i) * 20 * time.Second / (2 * most))
		for range 5 {
			n.Forbid([]ID{id}, Waiting, at)
		}
		n.Forbid([]ID{id}, Deleted, at)
	}
	is, _ := n.IsForbidden(mine, now.Add(20*time.Second))
	require.True(t, is)
}

// What is forbidden is not copied, and what is being copied is busy, and then moved.
func TestCopies(t *testing.T) {
	t.Parallel()
	var n Notes
	now := time.Now()
	id, other := ID{"S", 7, 1}, ID{"S", 8, 1}
	require.True(t, n.Copy(id, now))
	n.Forbid([]ID{id, other}, All, now)
	require.Equal(t, Busy, n.HowEnded(id))
	require.False(t, n.Copy(other, now))
	n.Copied(id, true, false, now)
	require.Equal(t, Moved, n.HowEnded(id))
	n.Forbid([]ID{other}, Released, now)
	require.True(t, n.Copy(other, now))
	n.Copied(other, false, false, now)
	require.Equal(t, Absent, n.HowEnded(other))
	n.Copied(other, false, true, now)
	require.Equal(t, Moved, n.HowEnded(other))
}
