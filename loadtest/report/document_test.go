package report

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDocument(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	require.NoError(t, os.WriteFile(path, []byte("# Page\n\n<!-- a: by hand -->\nold\n<!-- end -->\n\nmore\n\n<!-- b: x -->\n<!-- end -->\n"), 0o600))
	report := Report{Machine: Machine{CPUs: 2, CPU: "X"}, Cases: []Result{resultOf(Ours, 100, 200, 300)}}
	require.NoError(t, report.document(path+"#a"))
	require.NoError(t, report.document(path+"#a"), "a second time it replaces the first")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(text), "# Page\n\n<!-- a: by hand -->\n\n2 × X")
	require.Contains(t, string(text), "| echo saturation one | 200 |")
	require.Contains(t, string(text), "![Events per second](img/a/events.svg)")
	require.Contains(t, string(text), "<!-- end -->\n\nmore\n\n<!-- b: x -->\n<!-- end -->\n")
	require.NotContains(t, string(text), "old")
	require.FileExists(t, filepath.Join(filepath.Dir(path), "img", "a", "events.svg"))
	require.ErrorContains(t, report.document(path+"#c"), "there is no section between <!-- c: … -->")
	require.NoError(t, CheckDocument(path+"#b"))
	require.ErrorContains(t, CheckDocument(path+"#c"), "there is no section")
	require.ErrorContains(t, CheckDocument(path), "it is PAGE#SECTION")
	require.ErrorIs(t, CheckDocument(path+"x#a"), os.ErrNotExist)
}
