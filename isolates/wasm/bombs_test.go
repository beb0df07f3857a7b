package wasm_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/test/wasmtest"
	"github.com/pinwheel-run/pinwheel/isolates/wasm"
)

// Each bomb is refused with its number and the bound. The others are for V8's side to end.
func TestBombs(t *testing.T) {
	for _, bomb := range wasmtest.Compiled {
		t.Run(bomb.Name, func(t *testing.T) {
			module := bomb.Module()
			info, err := wasm.Check(module)
			var e *wasm.Error
			require.ErrorAs(t, err, &e, "%d bytes pass", len(module))
			require.Zero(t, info)
			require.True(t, e.Bound, e.Reason)
			require.Contains(t, e.Reason, bomb.Refused)
			require.LessOrEqual(t, e.Offset, len(module))
			t.Logf("%d bytes: %v", len(module), err)
		})
	}
	for _, bomb := range wasmtest.Running {
		t.Run(bomb.Name, func(t *testing.T) {
			info, err := wasm.Check(bomb.Module())
			require.NoError(t, err)
			require.Positive(t, info.Functions)
		})
	}
}

// Nothing interrupts an instruction that fills, copies or grows: a function has at most 1250.
func TestLongInstructionsCount(t *testing.T) {
	fills := func(n int) []byte {
		m := &wasmtest.Module{}
		m.Type("", "")
		m.Memory(wasmtest.Limits(1, -1)...)
		fill := wasmtest.Join([]byte{wasmtest.I32Const, 0, wasmtest.I32Const, 0, wasmtest.I32Const, 0}, wasmtest.MemoryFill)
		m.Function(0, 0, wasmtest.I32, wasmtest.Repeat(n, fill...)...)
		return m.Bytes()
	}
	info, err := wasm.Check(fills(900))
	require.NoError(t, err)
	require.Less(t, info.Compiled, int64(10_000))
	_, err = wasm.Check(fills(1251))
	require.ErrorContains(t, err, "values × branches of function 0: 25")
}
