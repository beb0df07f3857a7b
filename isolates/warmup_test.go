package isolates

import (
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// Without this test no one would notice a warm-up that fails half-way: cold contexts would be slower.
func TestRehearsal(t *testing.T) {
	t.Parallel()
	require.NoError(t, startRuntime())
	runtime.LockOSThread()
	iso := v8x.NewIsolate(prewarmedLimits)
	defer iso.Close()
	c, err := iso.NewContext(func([]byte) ([]byte, error) { return nil, errors.New("nothing is asked yet") })
	require.NoError(t, err)
	defer c.Close()
	seen := map[int]int{}
	warmUp(c, func(r v8x.Result) {
		require.NoError(t, r.Err)
		require.False(t, r.Terminated)
		in := v8x.ReadCommands(r.Out)
		for op, ok := in.Next(); ok; op, ok = in.Next() {
			seen[op]++
			if op == cmdFail {
				t.Errorf("event %v fails: %s %s %s", in.Number(), in.Text(), in.Text(), in.Text())
			}
		}
		require.NoError(t, in.Err())
	})
	require.Equal(t, 1, seen[cmdHandlers])
	require.Equal(t, 6, seen[cmdReply])
	require.Equal(t, 2, seen[cmdResult])
	require.Equal(t, 6, seen[cmdTimer])
	require.Equal(t, 2, seen[cmdLog])
	require.Zero(t, seen[cmdUncaught]+seen[cmdWaitFailed])
}
