package config

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A child reads the configuration of its supervisor, and its environment has no secret.
func TestConfigurationOfAChild(t *testing.T) {
	clean(t)
	secrets := map[string]string{
		"PINWHEEL_NATS_USER": "fleet", "PINWHEEL_NATS_PASSWORD": "hunter2", "PINWHEEL_CONTROL_TOKEN": "hunter2-0123456789",
		"PINWHEEL_CONSOLE_TOKEN": "hunter2-9876543210", "PINWHEEL_NATS_URL": "nats://a:hunter2@b:4222",
		"OTEL_EXPORTER_OTLP_HEADERS": "authorization=hunter2", "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "x=hunter2",
		"HTTPS_PROXY": "http://u:hunter2@proxy",
	}
	for name, value := range secrets {
		t.Setenv(name, value)
	}
	t.Setenv("DATABASE_PASSWORD", "hunter2") // of another program
	t.Setenv("LC_ALL", "C")
	t.Setenv("OTEL_SERVICE_NAME", "x")
	t.Setenv("PINWHEEL_THREADS", "3")
	want, err := Load()
	require.NoError(t, err)
	environ, hidden := want.ForChild()
	text := strings.Join(environ, "\n")
	require.NotContains(t, text, "hunter2")
	require.NotContains(t, text, "fleet")
	for _, entry := range []string{"LC_ALL=C", "OTEL_SERVICE_NAME=x", "PINWHEEL_THREADS=3"} {
		require.Contains(t, environ, entry)
	}

	for name := range secrets {
		require.NoError(t, os.Unsetenv(name))
	}
	path := filepath.Join(t.TempDir(), "secrets")
	require.NoError(t, os.WriteFile(path, hidden, 0o600))
	f, err := os.Open(path)
	require.NoError(t, err)
	t.Setenv(SecretsVariable, strconv.Itoa(int(f.Fd())))
	got, err := Load()
	require.NoError(t, err)
	require.Equal(t, want, got)
	for name, value := range secrets {
		require.Equal(t, value, os.Getenv(name))
	}
	require.Empty(t, os.Getenv(SecretsVariable), "it is read once")
	_ = f.Close() // Load has closed it
}

// A child may read what its configuration names.
func TestFilesOfAChild(t *testing.T) {
	clean(t)
	dir := t.TempDir()
	at := func(name string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(`{"creds": "`+dir+`/creds/x", "url": "nats://a", "ca": "~/ca/y"}`), 0o600))
		return path
	}
	at("creds/x")
	at("ca/y")
	at("nats/context/prod.json")
	t.Setenv("XDG_CONFIG_HOME", dir)
	t.Setenv("HOME", dir)
	t.Setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", at("otel/ca"))
	require.ElementsMatch(t, []string{
		filepath.Join(dir, "otel"), filepath.Join(dir, "nats/context.txt"), filepath.Join(dir, "nats/context"),
		filepath.Join(dir, "creds"), filepath.Join(dir, "ca"),
	}, Config{NatsContext: "prod"}.ChildReads())
	require.ElementsMatch(t, []string{
		filepath.Join(dir, "otel"), at("key/age"), filepath.Join(dir, "cert"), filepath.Join(dir, "cert"),
	}, Config{SecretsKey: at("key/age"), HTTPCert: at("cert/c"), NatsCreds: at("cert/k")}.ChildReads())
}
