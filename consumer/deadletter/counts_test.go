package deadletter_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/test/jsapitest"
)

func TestLettersAreCounted(t *testing.T) {
	t.Parallel()
	b := open(t)
	counts := func(owner string) []deadletter.Count {
		list, err := b.CountEach(t.Context(), owner)
		require.NoError(t, err)
		return list
	}
	require.Empty(t, counts(""))
	for i := range 7 {
		e := jsapitest.Task(uint64(i+1), "e", at)
		reason := events.ReasonException
		switch {
		case i == 5:
			reason = events.ReasonCPU
		case i == 6:
			e.Owner = "beta"
		}
		_, err := b.write(e, reason)
		require.NoError(t, err)
	}
	acme := []deadletter.Count{{"acme", "w", "task", events.ReasonException, 5},
		{"acme", "w", "task", events.ReasonCPU, 1}}
	require.Equal(t, acme, counts("acme"))
	require.Equal(t,
		append(acme, deadletter.Count{Owner: "beta", Worker: "w", Kind: "task", Reason: events.ReasonException, Letters: 1}),
		counts(""))
	require.Empty(t, counts("none"))
}

// nats-server answers with 100 000 subjects at once; the rest comes with further answers.
func TestManyLettersAreCounted(t *testing.T) {
	if testing.Short() {
		t.Skip("stores 100 001 messages")
	}
	t.Parallel()
	b := open(t)
	const n = 100_001
	for i := range n {
		require.NoError(t, b.NC.Publish(fmt.Sprintf("%s.dead.acme.w.task.%s.PINWHEEL_EVENTS.%d", jsapitest.Prefix,
			[]string{"cpu", "timeout"}[i%2], i), nil))
		if i%1000 == 0 {
			_, err := b.JS.AccountInfo(t.Context())
			require.NoError(t, err)
		}
	}
	require.Eventually(t, func() bool { return b.Stored(events.StreamDead) == n }, patience, patience/100)
	list, err := b.CountEach(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, []deadletter.Count{{"acme", "w", "task", events.ReasonCPU, n/2 + 1},
		{"acme", "w", "task", events.ReasonTimeout, n / 2}}, list)
}

// An owner has a bounded number of rows, and all have. What has no row of its own is in one that says so, so that the
// sum is right.
func TestCountsAreBounded(t *testing.T) {
	t.Parallel()
	var subjects []string
	sum := func(list []deadletter.Count, owner string) (n int) {
		for _, c := range list {
			if owner == "" || c.Owner == owner {
				n += c.Letters
			}
		}
		return n
	}
	for i := range 50 {
		subjects = append(subjects, fmt.Sprintf("p.q.dead.acme.w%d.task.cpu.S.%d", i, i),
			fmt.Sprintf("p.q.dead.acme.w%d.task.cpu.S.x%d", i, i))
	}
	subjects = append(subjects, "p.q.dead.beta.w.task.cpu.S.1", "p.q.dead.~.~.unknown.malformed.S.1")
	list := deadletter.Tally("p.q.dead.>", 1000, 10, subjects...)
	require.Len(t, list, 10+2)
	require.Equal(t, deadletter.Count{Owner: "acme", Worker: "~", Kind: "~", Reason: "~", Letters: 100 - 9*2}, list[0])
	require.Equal(t, []int{100, 1}, []int{sum(list, "acme"), sum(list, "beta")})

	for i := range 50 {
		subjects = append(subjects, fmt.Sprintf("p.q.dead.owner%d.w.task.cpu.S.1", i))
	}
	list = deadletter.Tally("p.q.dead.>", 20, 10, subjects...)
	require.Len(t, list, 20)
	require.Equal(t, 152, sum(list, ""))
	require.Equal(t, []any{"~", "~"}, []any{list[1].Owner, list[1].Worker}, "%v", list)
	require.Equal(t, []deadletter.Count{{"~", "~", "~", "~", 1}}, deadletter.Tally("p.dead.>", 20, 10, "p.dead.x"))
}
