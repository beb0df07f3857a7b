package isolates

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
)

// A run that must end does so where it waits. Other runs beside it are not affected.
func TestHaltedRunEnds(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, b *bench) {
		b.cpu = ample
		w := worker("w", `export default {
			async task(event) { console.log("waits"); await scheduler.wait(60000); console.log("never") },
		}`)
		e := task(`1`)
		e.Halt = &events.Signal{}
		halted := b.start(w, e)
		require.Eventually(t, func() bool { return len(b.lines()) > 0 }, patience, time.Millisecond)
		e.Halt.Fire()
		halted.wait(t, halted.ended)
		require.Equal(t, events.ReasonTimeout, halted.end.Failure.Reason)
		require.Contains(t, halted.end.Failure.Message, "it was told to end")

		over := task(`1`)
		over.Halt = &events.Signal{}
		o := b.run(worker("w2", `export default { task: () => 7 }`), over)
		require.Nil(t, o.end.Failure)
		over.Halt.Fire() // too late
		early := task(`1`)
		early.Halt = &events.Signal{}
		early.Halt.Fire()
		o = b.run(w, early)
		require.NotNil(t, o.end.Failure)
	})
}
