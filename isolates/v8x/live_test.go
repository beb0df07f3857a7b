package v8x

import (
	"flag"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var rounds = flag.Int("rounds", 120, "how many isolates TestNothingIsLeft opens and closes")

// Activities during which a context may be closed.
var lives = []string{
	`export default () => "ok"`,
	`export default () => { for (let i = 0; i < 1200; i++) Promise.reject(new Error("nobody " + i)) }`,
	`export default () => { const p = Promise.reject(1); Promise.resolve().then(() => p.catch(() => {})) }`,
	`export const bytes = new Uint8Array(1 << 20); export default () => new ArrayBuffer(1 << 16, { maxByteLength: 1 << 20 })`,
	`export default () => { throw new Error("thrown") }`,
	`await new Promise(() => {}); export default 1`,
	`throw new Error("at load")`,
	`export default (`,
	`export default () => { const keep = []; for (;;) keep.push(new Array(1000).fill(1.5)) }`,
	`export default () => { const keep = []; for (;;) keep.push(new Uint8Array(1 << 20)) }`,
	`export default () => { for (;;); }`,
}

// Closed isolates and contexts leave nothing behind, whatever they were doing.
func TestNothingIsLeft(t *testing.T) {
	newContext(t, roomy) // V8 itself, and everything that it keeps
	before := Alive()
	var sizes []int
	for i := range *rounds {
		liveOnce(t, i)
		if i%(*rounds/10) == *rounds/10-1 {
			debug.FreeOSMemory()
			Trim()
			sizes = append(sizes, rss(t)>>20)
		}
	}
	after := Alive()
	// The collector frees buffers on its own threads.
	require.Eventually(t, func() bool { after = Alive(); return after.Budgets <= before.Budgets }, patience,
		time.Millisecond)
	require.Equal(t, before, after)
	t.Logf("%d isolates; RSS in MB: %v", *rounds, sizes)
	require.Less(t, sizes[9], sizes[4]+48, "%v", sizes)
}

func liveOnce(t *testing.T, i int) {
	iso := NewIsolate(Limits{Heap: 16 << 20, Buffers: 16 << 20})
	defer iso.Close()
	var call Call
	for j := range 3 {
		c, err := iso.NewContext(func([]byte) ([]byte, error) { return AnswerString("a"), nil })
		require.NoError(t, err)
		defer c.Close()
		text := lives[(i+j)%len(lives)]
		stop := func() {}
		if strings.Contains(text, "for (;;);") {
			stop = terminating(iso)
		}
		state, _ := c.Module(Source{Name: "m.js", Text: text})
		if state == Pending {
			c.PollModule()
		}
		r := c.Call(call.Reset(50).Body().Bytes(), []byte("body"))
		stop()
		if r.Terminated {
			return
		}
	}
}

// terminating terminates the isolate again and again until stop is called. Where nothing runs, that does nothing.
func terminating(iso *Isolate) (stop func()) {
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		ticker := time.NewTicker(2 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				iso.Terminate()
			}
		}
	})
	return func() { close(done); running.Wait() }
}

// rss returns the memory of the process in RAM, in bytes.
func rss(t *testing.T) int {
	text, err := os.ReadFile("/proc/self/statm")
	require.NoError(t, err)
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	require.NoError(t, err)
	return pages * os.Getpagesize()
}

// v8go does not make its own context in an isolate.
func TestIsolatesHaveNoOtherContexts(t *testing.T) {
	require.NoError(t, start())
	iso := NewIsolate(roomy)
	defer iso.Close()
	require.Zero(t, iso.v8.GetHeapStatistics().NumberOfNativeContexts)
	c, err := iso.NewContext(nil)
	require.NoError(t, err)
	defer c.Close()
	require.EqualValues(t, 1, iso.v8.GetHeapStatistics().NumberOfNativeContexts)
}
