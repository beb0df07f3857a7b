package cells

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/events/workers/catalog"
	"github.com/pinwheel-run/pinwheel/internal/process/cells/wire"
)

// A cell in which V8 has lost many threads is replaced, and no event of its class is lost.
func TestCellsWithoutThreadsAreReplaced(t *testing.T) {
	t.Parallel()
	h := openHouse(t)
	h.install("good", "w", echo)
	h.run("good", "w", "first")
	before := h.pidOf("all")
	for _, owner := range []string{"a", "b", "c", "d", "e", "f"} { // an owner that cost a thread is refused for a time
		h.deploy(owner, `export default { task() { return "a".repeat(2 ** 27).match(/a/g).length } }`,
			func(w *workers.Worker) {
				w.Retries = workers.Retries{MaxAttempts: 1}
				w.Limits = workers.Limits{CPU: workers.Millis(time.Minute)} // V8 gives up first, also on a busy machine
			})
		h.run(owner, "w", "1")
	}
	require.Eventually(t, func() bool {
		reply, settled := h.run("good", "w", "again")
		require.Equal(t, lifecycle.Ack, settled.Outcome.Verdict, reply)
		return h.pidOf("all") != before
	}, patience, 10*time.Millisecond)
	require.Equal(t, 1, h.endsOf("replaced"))
	require.Zero(t, h.endsOf("died")+h.endsOf("lie"))
}

// Versions that run do not wear a cell out, however many and large they are. Workers that are gone do.
func TestOnlyVersionsThatAreGoneWearACell(t *testing.T) {
	t.Parallel()
	var has catalog.Catalog
	g := newGiven()
	worn := func(name string, versions ...string) (worn bool) {
		in := workers.Installation{Owner: "acme", Name: name}
		for _, v := range versions {
			in.Versions = append(in.Versions, &workers.Worker{Owner: "acme", Name: name, Version: v,
				Code: strings.Repeat("x", mostStaleBytes/2+1)})
		}
		has.Install(in)
		for _, w := range in.Versions {
			g.add(w)
			worn = g.worn(&has) || worn
		}
		return worn
	}
	require.False(t, worn("w", "1", "2", "3", "4"))
	require.False(t, worn("x", "1", "2"))
	has.Remove("acme", "w")
	require.True(t, worn("y", "1", "2"))
}

// A cell keeps each version of a worker that it was given. When most of what it has are versions that others have
// replaced, it is replaced.
func TestCellsWithOldVersionsAreReplaced(t *testing.T) {
	t.Parallel()
	s := openStage(t)
	code := echo + "//" + strings.Repeat("x", 10_000)
	var f *fake
	event := func(n int, from func() *fake) {
		s.deploy("acme", code, func(w *workers.Worker) { w.Number, w.Version = n, strconv.Itoa(n)+"-x" })
		done := s.give(newEvent(events.Task, "acme", strconv.Itoa(n)))
		f = from()
		got := f.await(wire.Attempts)
		f.finish(got.attempts[0])
		numbers(wire.Next, got.number, 64)(f, nil)
		_, end := s.wait(done)
		require.Equal(t, lifecycle.Ack, end.Outcome.Verdict)
	}
	event(1, func() *fake {
		f := s.cell(t)
		f.ready()
		return f
	})
	s.pools.each(func(c *cell) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.given.most.bytes = 20_000 // as many as it may have take minutes under the race detector
	})
	event(2, func() *fake { return f })
	event(3, func() *fake { return f })
	require.Zero(t, s.ends("replaced"), "one or two old versions are few")
	event(4, func() *fake { return f })
	f.await(wire.End)
	f.kill()
	require.Eventually(t, func() bool { return s.ends("replaced") == 1 }, patience, time.Millisecond)
	require.Empty(t, s.lied)
}
