package isolates

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/process/crashnote"
)

// The note of a process has the workers that its threads are in V8 for, also those whose turn has left its thread, and
// none that only wait.
func TestNoteHasWhatIsInV8(t *testing.T) {
	t.Parallel()
	file, err := crashnote.Create()
	require.NoError(t, err)
	defer file.Close()
	note, err := crashnote.Open(file)
	require.NoError(t, err)
	b := newBench(t, func(c *Config) { c.Note = note })
	b.cpu = ample
	noted := func() map[string]int {
		c, err := crashnote.Read(file, crashnote.End{Signal: syscall.SIGSEGV})
		require.NoError(t, err)
		found := map[string]int{}
		for _, r := range c.Runs {
			found[r.Owner+"/"+r.Worker]++
		}
		return found
	}
	for range 2 {
		waits := b.start(of("beta", worker("waits", `export default { task: () => new Promise((r) => setTimeout(r, 1e8)) }`)), task(`1`))
		long := b.start(lengthy(400), task(`1`))
		require.Eventually(t, func() bool { return noted()["acme/long"] == 1 }, patience, time.Millisecond)
		other := b.start(of("gamma", lengthy(100)), task(`1`))
		require.Eventually(t, func() bool {
			n := noted()
			return n["acme/long"] == 1 && n["gamma/long"] == 1 ||
				long.isOver()
		}, patience, time.Millisecond)
		require.NotContains(t, noted(), "beta/waits")
		<-other.ended
		<-long.ended
		require.False(t, waits.isOver())
	}
	require.Eventually(t, func() bool { return len(noted()) == 0 }, patience, time.Millisecond)
	free := 0
	for note.Slot() != nil {
		free++
	}
	require.GreaterOrEqual(t, free, 256-1-2, "the slots of threads that ended are free: one thread is there, and some OS threads may still end")
}
