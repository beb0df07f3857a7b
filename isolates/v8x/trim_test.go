//go:build !asan

// AddressSanitizer has its own allocator, which keeps freed memory.

package v8x

import (
	"bytes"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// Large blocks that C++ has used and freed go back to the operating system.
func TestFreedMemoryIsGivenBack(t *testing.T) {
	require.NoError(t, start())
	const size = 5 << 20
	run := func() {
		runtime.LockOSThread() // never unlocked: it needs its own thread, and its own arena of glibc
		iso := NewIsolate(Limits{Heap: 256 << 20, Buffers: 64 << 20})
		defer iso.Close()
		c, err := iso.NewContext(nil)
		require.NoError(t, err)
		defer c.Close()
		var call Call
		text := string(bytes.Repeat([]byte("x"), size))
		r := c.Call(call.Reset(7).String(text).Bytes(), nil)
		require.NoError(t, r.Err)
		require.Greater(t, len(r.Out), size)
	}
	inThread := func() {
		done := make(chan struct{})
		go func() { defer close(done); run() }()
		<-done
	}
	inThread()
	Trim()
	before := resident(t)
	for range 3 {
		inThread()
	}
	Trim()
	// the race detector keeps up to 27 MB of it; without the bounds 71 to 92 MB stay
	require.Less(t, resident(t), before+10*size)
}

// resident returns the memory of the process that is in RAM and does not belong to files, in bytes.
func resident(t *testing.T) int {
	t.Helper()
	debug.FreeOSMemory() // the rest is C++'s
	return memory(t, "RssAnon")
}

// memory returns a field of /proc/self/status, in bytes: proc_pid_status(5).
func memory(t *testing.T, field string) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	_, rest, ok := bytes.Cut(text, []byte(field+":"))
	require.True(t, ok)
	kb, err := strconv.Atoi(string(bytes.Fields(rest)[0]))
	require.NoError(t, err)
	return kb << 10
}
