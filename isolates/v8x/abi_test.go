package v8x

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The hand-written declarations in v8abi.h agree with V8's headers. The headers come with v8go's module. So a
// difference fails this test and does not cause a crash.
func TestABI(t *testing.T) {
	module, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "rogchap.com/v8go").Output()
	require.NoError(t, err)
	headers := filepath.Join(strings.TrimSpace(string(module)), "deps", "include")
	// The definitions with which v8go, and V8's archive, are built.
	real := dump(t, "-DREAL", "-I"+headers, "-DV8_COMPRESS_POINTERS", "-DV8_31BIT_SMIS_ON_64BIT_ARCH",
		"-DV8_ENABLE_SANDBOX")
	ours := dump(t)
	require.Equal(t, real, ours)
	require.Greater(t, strings.Count(ours, "\n"), 50)
}

// dump builds testdata/abi.cc, without access control, and returns what it prints.
func dump(t *testing.T, flags ...string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "abi")
	compiler := os.Getenv("CXX")
	if compiler == "" {
		compiler = "g++"
	}
	args := append([]string{"-std=c++20", "-fno-access-control", "-w", "-O0", "-o", binary, "testdata/abi.cc",
		"-Wl,--unresolved-symbols=ignore-all"}, flags...)
	out, err := exec.Command(compiler, args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	printed, err := exec.Command(binary).Output()
	require.NoError(t, err)
	return string(printed)
}
