package isolates

import (
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/isolates/js"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// Without this test no one would notice a warm-up that fails half-way: cold contexts would be slower.
func TestRehearsal(t *testing.T) {
	t.Parallel()
	require.NoError(t, js.Start(v8x.AllCompilers))
	runtime.LockOSThread()
	iso := v8x.NewIsolate(v8x.Limits{Heap: 128 << 20, Buffers: 128 << 20})
	defer iso.Close()
	c, err := iso.NewContext(func([]byte) ([]byte, error) { return nil, errors.New("nothing is asked yet") })
	require.NoError(t, err)
	defer c.Close()
	seen := map[int]int{}
	js.WarmUp(c, func(r v8x.Result) {
		require.NoError(t, r.Err)
		require.False(t, r.Terminated)
		in := v8x.ReadCommands(r.Out)
		for op, ok := in.Next(); ok; op, ok = in.Next() {
			seen[op]++
			if op == js.CmdFail {
				t.Errorf("event %v fails: %s %s %s", in.Number(), in.Text(), in.Text(), in.Text())
			}
		}
		require.NoError(t, in.Err())
	})
	require.Equal(t, 1, seen[js.CmdHandlers])
	require.Equal(t, 6, seen[js.CmdReply])
	require.Equal(t, 2, seen[js.CmdResult])
	require.Equal(t, 6, seen[js.CmdTimer])
	require.Equal(t, 2, seen[js.CmdLog])
	require.Zero(t, seen[js.CmdUncaught]+seen[js.CmdWaitFailed])
}
