package v8x

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	v8 "rogchap.com/v8go"
)

// V8 runs with the flags that Start sets. On a machine without protection keys this test cannot show whether one with
// them would crash without the first flag.
func TestFlags(t *testing.T) {
	const child = "V8X_PRINT_FLAGS"
	if os.Getenv(child) != "" {
		v8.SetFlags("--print-flag-values")
		require.NoError(t, Start(AllCompilers))
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestFlags$")
	cmd.Env = append(os.Environ(), child+"=1")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, want := range []string{"--no-memory-protection-keys", "--no-extensible-ro-snapshot",
		"--no-turboshaft-loop-unrolling", "--no-wasm-loop-unrolling", "--no-wasm-loop-peeling", "--max-opt=3",
		"--no-concurrent-recompilation", "--max-optimized-bytecode-size=15000", "--invocation-count-for-maglev=4000",
		"--wasm-tiering-budget=20000", "--wasm-sync-tier-up", "--wasm-max-mem-pages=8192", "--wasm-max-table-size=1000000"} {
		require.Contains(t, string(out), want+"\n")
	}
}
