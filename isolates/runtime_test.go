package isolates

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// V8 keeps the texts of the runtime outside its heaps only if they are ASCII.
func TestRuntimeIsInASCII(t *testing.T) {
	t.Parallel()
	require.Equal(t, `a\u2026\u00e9\ud83d\ude00\n`+"\n", ascii("a…é😀\\n\n"))
	files, err := runtimeFiles()
	require.NoError(t, err)
	for _, f := range files {
		require.Equal(t, f.Text, ascii(f.Text), f.Name)
	}
}

// order.txt gives the order in which the files of the runtime are evaluated. A file that it does not name would never
// be evaluated.
func TestOrderNamesEachFileOnce(t *testing.T) {
	t.Parallel()
	files, err := runtimeOrder()
	require.NoError(t, err)
	var listed, there []string
	require.NoError(t, fs.WalkDir(runtimeFS, "js", func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".js") {
			there = append(there, strings.TrimPrefix(path, "js/"))
		}
		return err
	}))
	for _, f := range files {
		listed = append(listed, f.Name)
	}
	slices.Sort(listed)
	slices.Sort(there)
	require.Equal(t, there, listed)
}
