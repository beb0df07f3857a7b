package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/doctor"
	"github.com/pinwheel-run/pinwheel/internal/natsd"
)

func runDoctor(t *testing.T, cfg Config, args ...string) (code int, out string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = MainWith(cfg, append([]string{"doctor"}, args...), strings.NewReader(""), &stdout, &stderr)
	require.Empty(t, stderr.String())
	return code, stdout.String()
}

// A fleet that is well: nothing is bad, and all that is not ok is that anybody may connect to a server without users.
func TestDoctorOfAFleetThatIsWell(t *testing.T) {
	h := openHouse(t, func(c *Config) { c.MaxBytes = 64 << 20 })
	cfg := h.fleet.cfg
	cfg.NatsURL = h.fleet.url()
	code, out := runDoctor(t, cfg, "--json")
	require.Equal(t, exitWarn, code, out)
	checks := map[string]doctor.Line{}
	for line := range strings.Lines(out) {
		var l doctor.Line
		require.NoError(t, json.Unmarshal([]byte(line), &l))
		checks[l.Check] = l
		if l.Check != "strangers" {
			require.Equal(t, doctor.OK, l.Level, line)
		}
	}
	require.Equal(t, doctor.Warn, checks["strangers"].Level)
	require.Contains(t, checks["processes"].Text, "1 take events")
	for _, check := range []string{"server", "payload", "jetstream", "limits", "assets", "durability", "disk", "clock", "progress", "dead", "permissions"} {
		require.Contains(t, checks, check)
	}

	cfg.MaxBytes *= 2 // what this environment would make
	code, out = runDoctor(t, cfg)
	require.Equal(t, exitWarn, code)
	require.Contains(t, out, "max_bytes is 67108864 and should be 134217728")
	require.Contains(t, out, "→ the next process that starts brings it forward")
}

func TestDoctorWithoutNATSAndWithoutAFleet(t *testing.T) {
	cfg := testConfig(t)
	cfg.NatsURL = "nats://127.0.0.1:1"
	code, out := runDoctor(t, cfg)
	require.Equal(t, exitBad, code)
	require.Contains(t, out, "bad   nats")
	srv, err := natsd.Open(natsd.Config{StoreDir: t.TempDir(), Port: -1})
	require.NoError(t, err)
	defer srv.Close()
	cfg.NatsURL = srv.URL()
	code, out = runDoctor(t, cfg)
	require.Equal(t, exitBad, code)
	require.Contains(t, out, "nothing of a fleet is here")
	require.Contains(t, out, "no process of the fleet answers")
}
