package rewriter_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/isolates/offload/rewriter"
)

// All selectors together have a bound, which Memory counts.
func TestSelectorsAreBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", rewriter.MaxSelector)
	_, err := rewriter.New([]string{long, long, long, long}, make([]rewriter.Handlers, 5))
	require.NoError(t, err)
	_, err = rewriter.New([]string{long, long, long, long, "a"}, make([]rewriter.Handlers, 6))
	require.ErrorContains(t, err, "the selectors of an HTMLRewriter have more than 65536 bytes")
}

// Tests without case make the value in lower case once for a tag, not once for a test.
func TestFoldedTestsShareAValue(t *testing.T) {
	t.Parallel()
	selectors := strings.TrimSuffix(strings.Repeat(`[a*="y" i],`, 200), ",")
	s, err := rewriter.New([]string{selectors, `[A$="XZ" i][b="q" i]`}, everything)
	require.NoError(t, err)
	page := []byte(`<c a="` + strings.Repeat("X", 1000) + `z" B=Q><c a=Xz b=Q><c a=Xy>`)
	var records []int32
	made := testing.Benchmark(func(b *testing.B) {
		for range b.N {
			var err error
			if _, records, _, err = s.Step(append(page, "</c></c></c>"...), false, always); err != nil {
				b.Fatal(err)
			}
		}
	})
	require.NotEmpty(t, records)
	require.Less(t, made.AllocedBytesPerOp(), int64(20_000))
	_, list := tokens(t, []string{selectors, `[A$="XZ" i][b="q" i]`}, everything, string(page))
	require.Len(t, list, 3)
	require.Contains(t, list[0], " [1] ")
	require.Contains(t, list[1], " [1] ")
	require.Contains(t, list[2], " [0] ")
}

// Without selectors nobody asks what is open, so that has no bound.
func TestPagesWithoutSelectorsMayNest(t *testing.T) {
	t.Parallel()
	s, err := rewriter.New(nil, []rewriter.Handlers{all})
	require.NoError(t, err)
	require.NoError(t, steps(t, s, strings.Repeat("<p>", 10_000), 10))
}

// The same namespace again takes no place, and ends as often as it began.
func TestNamespacesAreCounted(t *testing.T) {
	t.Parallel()
	s, err := rewriter.New([]string{"b"}, []rewriter.Handlers{rewriter.Elements, 0})
	require.NoError(t, err)
	require.NoError(t, steps(t, s, strings.Repeat("<svg/>", 10_000), 1))
	const svg, html = 4, 0
	for page, want := range map[string]int32{
		"<svg><svg></svg><g/><b2></b2>": svg, "<svg><svg></svg></svg>": html,
		"<svg><svg><desc><svg></svg></desc></svg>": svg, "<svg><desc><svg><svg></svg></svg>": html,
	} {
		s, err := rewriter.New([]string{"x"}, []rewriter.Handlers{rewriter.Elements, 0})
		require.NoError(t, err)
		_, records, _, err := s.Step([]byte(page+"<x></x>"), true, always)
		require.NoError(t, err)
		require.Equal(t, want, records[3]&^3, page)
	}
}
