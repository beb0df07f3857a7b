package control

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
)

// Requests share a count, also while it is under way, and the next one begins when it has paid for itself.
func TestCountsAreShared(t *testing.T) {
	t.Parallel()
	var l letterCounts
	var begun []*letterCount
	var mu sync.Mutex
	start := func(c *letterCount) {
		mu.Lock()
		defer mu.Unlock()
		begun = append(begun, c)
	}
	at := time.Now()
	ask := func(owner string, now time.Time) (*letterCount, error) { return l.get(t.Context(), owner, now, start) }
	var all sync.WaitGroup
	var answers [10]*letterCount
	for i := range answers {
		all.Go(func() { answers[i], _ = ask("", at) })
	}
	require.Eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(begun) == 1
	}, time.Minute, time.Millisecond)
	begun[0].end([]deadletter.Count{{Owner: "acme"}}, nil, at.Add(time.Second))
	all.Wait()
	for _, c := range answers {
		require.Same(t, begun[0], c)
	}
	for _, c := range []struct {
		after time.Duration
		begun int
	}{{3 * time.Second, 1}, {21 * time.Second, 1}, {21*time.Second + 1, 2}} {
		now, stop := context.WithCancel(t.Context())
		stop() // does not wait for a count that has begun
		_, _ = l.get(now, "", at.Add(c.after), start)
		require.Len(t, begun, c.begun, "%s", c.after)
	}

	// A request does not wait longer than it may. A count that failed is tried again soon.
	over, stop := context.WithCancel(t.Context())
	stop()
	_, err := l.get(over, "acme", at, start)
	require.ErrorContains(t, err, "still being counted")
	begun[2].end(nil, errors.New("NATS is away"), at.Add(time.Minute))
	_, err = ask("acme", at.Add(time.Minute+countFor))
	require.ErrorContains(t, err, "NATS is away")
	_, _ = l.get(over, "acme", at.Add(time.Minute+countFor+1), start)
	require.Len(t, begun, 4)
}

// Owners cannot make a process keep more counts than it has room for. That of all owners stays.
func TestKeptCountsAreBounded(t *testing.T) {
	t.Parallel()
	var l letterCounts
	at := time.Now()
	start := func(c *letterCount) { c.end(nil, nil, at) }
	_, err := l.get(t.Context(), "", at, start)
	require.NoError(t, err)
	for i := range 3 * keptCounts {
		_, err := l.get(t.Context(), fmt.Sprint("owner-", i), at, start)
		require.NoError(t, err)
		require.LessOrEqual(t, len(l.of), keptCounts)
	}
	require.Contains(t, l.of, "")
	later := at.Add(time.Hour)
	_, err = l.get(t.Context(), "another", later, func(c *letterCount) { c.end(nil, nil, later) })
	require.NoError(t, err)
	require.Len(t, l.of, 1, "the others are over")
}
