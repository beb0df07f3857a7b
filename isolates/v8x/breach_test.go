package v8x

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Only a binary that is built with the tag breach has what it gives to JavaScript.
func TestBreachNeedsItsTag(t *testing.T) {
	t.Parallel()
	files := func(args ...string) string {
		out, err := exec.Command("go", append([]string{"list", "-f", "{{.CXXFiles}} {{.CgoFiles}} {{.CgoCXXFLAGS}}"},
			args...)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	for _, part := range []string{"breach.cc", "breach.go", "V8X_BREACH"} {
		require.NotContains(t, files("."), part)
		require.Contains(t, files("-tags", "breach", "."), part)
	}
	self, err := os.Executable()
	require.NoError(t, err)
	binary, err := os.ReadFile(self)
	require.NoError(t, err)
	text := []byte(strings.Join([]string{"__breach", "read: an address"}, ".")) // this test does not have it as a whole
	require.Equal(t, hasBreach, bytes.Contains(binary, text))
}
