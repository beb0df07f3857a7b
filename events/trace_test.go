package events

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is not valid is no parent. The library of OpenTelemetry agrees (internal/process/telemetry, FuzzTraceParent).
func TestTraceParent(t *testing.T) {
	t.Parallel()
	const valid = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	c, ok := ParseTraceParent(valid, "vendor=1")
	require.True(t, ok)
	require.Equal(t, []any{valid, true, "vendor=1"}, []any{c.Parent(), c.Sampled, c.State})
	c, ok = ParseTraceParent("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-02-more", strings.Repeat("x", 513))
	require.True(t, ok, "a later version")
	require.Equal(t, []any{valid[:54] + "0", ""}, []any{c.Parent(), c.State})
	_, ok = ParseTraceParent(valid, "a=\r\nb")
	require.True(t, ok)
	for _, wrong := range []string{
		"", valid[:54], valid + "-", valid + "0", "ff" + valid[2:], "0g" + valid[2:], strings.ToUpper(valid),
		strings.ReplaceAll(valid, "-", "_"),
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01", "cc" + valid[2:] + "x",
	} {
		_, ok := ParseTraceParent(wrong, "")
		require.False(t, ok, wrong)
	}
}
