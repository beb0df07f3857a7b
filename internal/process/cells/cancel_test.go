package cells

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// An event may be cancelled while its cell starts, while its module is loaded, and while it computes without a pause.
// It ends as cancelled each time, long before its limits.
func TestCancelledEventsEndInCells(t *testing.T) {
	t.Parallel()
	h := openHouse(t)
	w := &workers.Worker{Owner: "alice", Name: "w", Version: "1-x", Number: 1, Hash: "x", File: "w.js",
		Code: `for (let i = 0; i < 1e6; i++); export default { task() { for (;;); } }`}
	w.Limits = workers.Limits{CPU: workers.Millis(2 * patience), Wall: workers.Millis(2 * patience)}
	h.catalog.Install(workers.Only(w))
	seed := rand.Uint64()
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for i := range 12 {
		e := newEvent(events.Task, "alice", "1")
		done := h.give(e)
		require.Eventually(t, func() bool { return e.Began() != 0 }, patience, time.Millisecond)
		if i > 0 { // the first: at once, while the cell starts
			time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond) // any moment will do
		}
		h.pools.Cancel(e)
		_, end := h.wait(done)
		require.NotNil(t, end.Outcome.Failure)
		require.Equal(t, events.ReasonCancelled, end.Outcome.Failure.Reason)
	}
}
