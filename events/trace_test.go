package events

import (
	"fmt"
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

func TestPropagates(t *testing.T) {
	t.Parallel()
	trace := &Trace{Propagate: []string{"api.example.com", "*.internal.example.com", "[::1]"}}
	require.NoError(t, trace.validate())
	for host, want := range map[string]bool{
		"api.example.com": true, "API.Example.com.": true, "a.internal.example.com": true, "a.b.internal.example.com": true,
		"::1": true, "::2": false, "internal.example.com": false, "xinternal.example.com": false, "evil.com": false,
		"api.example.com.evil.com": false, "": false,
	} {
		require.Equal(t, want, trace.Propagates(host), host)
	}
	require.False(t, (*Trace)(nil).Propagates("api.example.com"))
	for _, wrong := range []string{"", "*", "*.", "https://a", "A.example.com", "a b", "a/b", "*.*.com", ".a", "a:*",
		"api.example.com:8080", "[::1", "::1", "*.[::1]", "[0:0::1]", "[127.0.0.1]"} {
		err := (&Trace{Propagate: []string{"ok.example.com", wrong}}).validate()
		require.ErrorContains(t, err, fmt.Sprintf("trace.propagate[1] is %q: it is a host in lower case", wrong))
	}
	require.ErrorContains(t, (&Trace{Propagate: make([]string, 33)}).validate(), "trace.propagate has 33: at most 32 are allowed")
}
