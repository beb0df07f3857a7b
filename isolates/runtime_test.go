package isolates

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// V8 keeps the texts of the runtime outside of its heaps only if they are ASCII.
func TestRuntimeIsInASCII(t *testing.T) {
	require.Equal(t, `a\u2026\u00e9\ud83d\ude00\n`+"\n", ascii("a…é😀\\n\n"))
	files, err := runtimeFiles()
	require.NoError(t, err)
	for _, f := range files {
		require.Equal(t, f.Text, ascii(f.Text), f.Name)
	}
}
