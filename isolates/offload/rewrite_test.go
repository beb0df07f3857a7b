package offload_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/isolates/offload"
)

// A page that is closed while a step is under way keeps its memory until the step is over.
func TestClosedRewritesKeepMemoryUntilTheirStepIsOver(t *testing.T) {
	t.Parallel()
	w, err := offload.NewRewrite([]string{"[a*=b]"}, []byte{1, 0})
	require.NoError(t, err)
	freed := 0
	free := func() { freed++ }
	asked := false
	page := append(make([]byte, 0, 200_000), `<c a="`...)
	for len(page) < 190_000 {
		page = append(page, 'x')
	}
	_, _ = w.Step(append(page, `">`...), true, func() error {
		asked = true
		w.Close(free)
		w.Close(free)
		require.Zero(t, freed, "a step is under way")
		return nil
	})
	require.True(t, asked)
	require.Equal(t, 1, freed)
	w.Close(free)
	require.Equal(t, 1, freed)
	p, _ := w.Step([]byte("<a>"), false, offload.Always)
	require.Contains(t, string(p.Answer()), "the page is closed", "a step that was queued before")
}

// A step that is delivered late has its own bytes.
func TestRewritesHandOverTheirBytes(t *testing.T) {
	t.Parallel()
	w, err := offload.NewRewrite(nil, []byte{0})
	require.NoError(t, err)
	first, _ := w.Step([]byte("<a>first"), false, offload.Always)
	before := string(first.Answer())
	_, _ = w.Step([]byte("<b>other"), false, offload.Always)
	require.Equal(t, before, string(first.Answer()))
	freed := false
	w.Close(func() { freed = true })
	require.True(t, freed, "no step is under way")
}
