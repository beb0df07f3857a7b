package cli_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Packages bring a page for each command, and for the variables of the environment.
func TestManualPages(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1767225600") // 2026-01-01
	f := alone(t)
	dir := filepath.Join(t.TempDir(), "man1")
	res := f.Pinwheel("man", dir)
	require.Zero(t, res.Code, res.Err)
	for name, want := range map[string]string{
		"pinwheel.1": "pinwheel-dead(1)", "pinwheel-dead-replay.1": `\fB--to`, "pinwheel-environment.1": "PINWHEEL_NATS_URL",
	} {
		page, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Contains(t, string(page), want)
		require.Contains(t, string(page), `"Jan 2026"`, "the date is that of SOURCE_DATE_EPOCH")
		require.NotContains(t, string(page), "Auto generated")
	}
	require.NotContains(t, f.Pinwheel("--help").Out, "manual pages")
}
