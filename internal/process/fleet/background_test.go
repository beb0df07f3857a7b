package fleet

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/process/config"
)

func TestBackgroundThreads(t *testing.T) {
	t.Parallel()
	for _, k := range []struct{ setting, threads, want int }{
		{-1, 1, 1}, {-1, 2, 2}, {-1, 4, 4}, {-1, 16, 4}, {-1, 56, 7}, {-1, 62, 2}, {-1, 64, 0}, {0, 2, 0}, {3, 2, 3},
		{64, 2, 62},
	} {
		require.Equal(t, k.want, backgroundThreads(config.Config{BackgroundThreads: k.setting}, k.threads), "%+v", k)
	}
}

func TestGoHasAProcessorForEachBackgroundThread(t *testing.T) {
	t.Setenv("GOMAXPROCS", "")
	before := runtime.GOMAXPROCS(0)
	undo := leaveProcessors(2)
	require.Equal(t, before+2, runtime.GOMAXPROCS(0))
	undo()
	require.Equal(t, before, runtime.GOMAXPROCS(0))
	t.Setenv("GOMAXPROCS", "7") // an explicit setting wins
	defer leaveProcessors(2)()
	require.Equal(t, before, runtime.GOMAXPROCS(0))
}
