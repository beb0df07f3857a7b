//go:build !asan

// AddressSanitizer has its own allocator, which glibc does not know.

package v8x

import (
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Isolates keep nothing of threads that have called ForgetThread.
func TestThreadsAreForgotten(t *testing.T) {
	iso, c := newContext(t, roomy)
	c.Module(Source{Name: "m.js", Text: `export default () => 1`})
	other := NewIsolate(roomy)
	defer other.Close()
	visit := func(n int, forget bool) int {
		before := Allocated()
		for range n {
			done := make(chan error)
			go func() {
				runtime.LockOSThread() // the thread ends with the goroutine
				var call Call
				r := c.Call(call.Reset(50).Bytes(), nil)
				if forget {
					ForgetThread()
				}
				done <- r.Err
			}()
			require.NoError(t, <-done)
		}
		return Allocated() - before
	}
	visit(500, true) // the runtime's own tables grow first
	// Other tests' threads take and give memory too: what happens in most rounds is of this one.
	var keptIn, forgottenIn []int
	for range 7 {
		keptIn, forgottenIn = append(keptIn, visit(1000, false)), append(forgottenIn, visit(1000, true))
	}
	slices.Sort(keptIn)
	slices.Sort(forgottenIn)
	kept, forgotten := keptIn[3], forgottenIn[3]
	t.Logf("1000 threads: %d bytes, and %d when they are forgotten", kept, forgotten)
	require.Greater(t, kept, 1000*32)
	require.Less(t, forgotten, kept*2/3)
	require.Zero(t, iso.Flags())
}
