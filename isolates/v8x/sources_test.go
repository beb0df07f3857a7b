package v8x

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The texts of the runtime are in no heap. Every isolate compiles the code that it runs first from them, also isolates
// that are made after others were closed.
func TestTextsAreOutsideOfTheHeaps(t *testing.T) {
	require.NoError(t, start())
	defer func() { require.NoError(t, Snapshot(testFiles, nil)) }() // as before, for the other tests
	const size = 4 << 20
	for _, sign := range []string{"x", "ß", "→"} {
		files := []File{
			{Name: "empty.js", Text: ""},
			{Name: "lazy.js", Text: `internal.count = () => { const lazy = () => "` + sign + `".length; return lazy() }; //` +
				strings.Repeat("-", size)},
			{Name: "entry.js", Text: `host.entry((op) => { if (op !== 1) host.send(op, internal.count(), internal.count.toString().slice(0, 5)) })`},
		}
		require.NoError(t, Snapshot(files, nil))
		for range 3 {
			iso := NewIsolate(roomy)
			c, err := iso.NewContext(nil)
			require.NoError(t, err)
			if sign == "x" {
				require.Less(t, iso.HeapBytes(), uint64(size))
			} else {
				require.Greater(t, iso.HeapBytes(), uint64(size), "a text that is not ASCII is there, too")
			}
			iso.CollectGarbage()
			n, text := counted(t, c)
			require.Equal(t, 1., n)
			require.Equal(t, "() =>", text)
			c.Close()
			iso.Close()
		}
	}
}
