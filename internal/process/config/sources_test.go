package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

func TestSourceContexts(t *testing.T) {
	t.Parallel()
	require.Equal(t, map[string]string{}, Config{}.SourceContexts())
	require.Equal(t, map[string]string{"a": "a", "b": "old cluster"},
		Config{Sources: List{"a", "b=old cluster"}}.SourceContexts())
	for _, wrong := range []List{{"a", "a=b"}, {"a b"}, {"=x"}, {"a="}} {
		require.Nil(t, Config{Sources: wrong}.SourceContexts(), wrong)
	}
}

func TestSourcesConnectByContext(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "nats", "context"), 0o700))
	file := filepath.Join(dir, "nats", "context", "there.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"url":"`+natstest.Start(t).URL()+`","jetstream_domain":"hub"}`), 0o600))
	c := Config{Sources: List{"warehouse=there", "lost=nowhere"}}
	nc, domain, err := c.ConnectSource("warehouse")
	require.NoError(t, err)
	defer nc.Close()
	require.Equal(t, "hub", domain)
	require.True(t, nc.IsConnected())
	_, _, err = c.ConnectSource("lost")
	require.ErrorContains(t, err, `NATS context "nowhere" (PINWHEEL_SOURCES)`)
	require.Contains(t, c.ChildReads(), filepath.Join(dir, "nats", "context"))
}
