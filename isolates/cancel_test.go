package isolates

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// An event may be cancelled before it begins, while its module is loaded, and while it computes without a pause or
// waits. It ends as cancelled each time, long before its limits.
func TestCancelledEventsEnd(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	b := newBench(t)
	for i := range 16 {
		code := `for (let i = 0; i < 1e6; i++); export default { task() { for (;;); } }`
		if i%2 == 1 {
			code = `export default { task: () => new Promise((done) => setTimeout(done, 1e9)) }`
		}
		w := worker("w"+string(rune('a'+i)), code) // each is loaded anew
		w.Limits = workers.Limits{CPU: workers.Millis(2 * patience), Wall: workers.Millis(2 * patience)}
		e := task(`1`)
		o := b.start(w, e)
		time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond) // any moment will do
		b.pool.Cancel(e)
		o.wait(t, o.ended)
		require.NotNil(t, o.end.Failure)
		require.Equal(t, events.ReasonCancelled, o.end.Failure.Reason)
	}
}
