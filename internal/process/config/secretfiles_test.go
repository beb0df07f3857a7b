package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each variable that may hold a secret can stand in a file.
func TestSecretsInFiles(t *testing.T) {
	clean(t)
	dir := t.TempDir()
	file := func(text string) string {
		path := filepath.Join(dir, strings.ReplaceAll(t.Name(), "/", "-"))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	values := map[string]string{
		"PINWHEEL_NATS_URL": "nats://fleet:x@a:4222", "PINWHEEL_NATS_USER": "fleet", "PINWHEEL_NATS_PASSWORD": " pass word\t",
		"PINWHEEL_NATS_TOKEN": "token", "PINWHEEL_CONTROL_TOKEN": "0123456789abcdef",
		"PINWHEEL_CONSOLE_TOKEN": "fedcba9876543210",
	}
	beside := map[string]string{"PINWHEEL_NATS_PASSWORD": "PINWHEEL_NATS_USER"}
	found := 0
	for _, v := range Variables() {
		if v.File == "" {
			require.NotRegexp(t, "PASSWORD|TOKEN$", v.Name)
			continue
		}
		found++
		t.Run(v.Name, func(t *testing.T) {
			if b := beside[v.Name]; b != "" {
				t.Setenv(b, values[b])
			}
			for _, end := range []string{"", "\n", "\r\n"} {
				t.Setenv(v.File, file(values[v.Name]+end))
				c, err := Load()
				require.NoError(t, err)
				require.Contains(t, environ(c), v.Name+"="+values[v.Name])
			}
			for text, want := range map[string]string{
				"": "empty", "\n": "empty", "a\x00b": "byte 0", strings.Repeat("x", maxSecretFile+1): "more than 65536 bytes",
			} {
				t.Setenv(v.File, file(text))
				_, err := Load()
				require.ErrorContains(t, err, v.File+" is ")
				require.ErrorContains(t, err, want)
			}
			for path, want := range map[string]string{dir + "/none": "no such file", dir: "is a directory"} {
				t.Setenv(v.File, path)
				_, err := Load()
				require.ErrorContains(t, err, want)
			}
			t.Setenv(v.File, file(values[v.Name]))
			t.Setenv(v.Name, values[v.Name])
			_, err := Load()
			require.ErrorContains(t, err, v.Name+" and "+v.File+" are both set")
			t.Setenv(v.File, "") // as in a file for Compose
			_, err = Load()
			require.NoError(t, err)
		})
	}
	require.Len(t, values, found)
}

// An error about a value that is wrong does not show it.
func TestErrorsHideSecrets(t *testing.T) {
	clean(t)
	for name, value := range map[string]string{
		"PINWHEEL_NATS_URL": "nats://fleet:hunter2@:port", "PINWHEEL_CONTROL_TOKEN": "hunter2",
		"PINWHEEL_CONSOLE_TOKEN": "hunter2", "PINWHEEL_NATS_PASSWORD": "hunter2",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, value)
			_, err := Load()
			require.ErrorContains(t, err, name)
			require.NotContains(t, err.Error(), "hunter2")
		})
	}
}
