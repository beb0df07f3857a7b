package workers

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRunsShare(t *testing.T) {
	for text, want := range map[KeepRuns]float64{
		RunsAll: 1, RunsFailures: 0, "1%": 0.01, "100%": 1, "0.5%": 0.005,
	} {
		share, ok := text.Share()
		require.True(t, ok, text)
		require.InDelta(t, want, share, 1e-9, text)
		require.NoError(t, text.Check())
	}
	for _, text := range []KeepRuns{RunsNone, ""} {
		_, ok := text.Share()
		require.False(t, ok, text)
		require.NoError(t, text.Check())
	}
	for _, text := range []KeepRuns{"0%", "101%", "%", "-1%", "1", "NaN%", "Inf%", "1e-3%", "0x1%", "1.2.3%", " 1%", "ALL",
		"0.000000001%"} {
		_, ok := text.Share()
		require.False(t, ok, text)
		require.ErrorContains(t, text.Check(), "runs is")
	}
}
