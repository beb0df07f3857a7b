package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/operate/doctor"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// Exit codes of doctor.
const (
	exitWarn = 1
	exitBad  = 2
)

func runDoctor(t *testing.T, f *fleettest.Fleet, args ...string) (code int, out string) {
	t.Helper()
	r := f.Pinwheel(append([]string{"doctor"}, args...)...)
	require.Empty(t, r.Err)
	return r.Code, r.Out
}

// A healthy fleet: nothing is bad. The only finding that is not ok is that anyone may connect to a server without
// users.
func TestDoctorOfAFleetThatIsWell(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	code, out := runDoctor(t, f, "--json")
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
	for _, check := range []string{"server", "payload", "jetstream", "limits", "assets", "durability", "disk", "clock",
		"progress", "dead", "permissions"} {
		require.Contains(t, checks, check)
	}

	f.Config.MaxBytes *= 2 // the size that this configuration would set
	code, out = runDoctor(t, f)
	require.Equal(t, exitWarn, code)
	require.Contains(t, out, "max_bytes is 64MiB and should be 128MiB")
	require.Contains(t, out, "→ it stays so, and processes work with it")
}

func TestDoctorWithoutNATSAndWithoutAFleet(t *testing.T) {
	t.Parallel()
	f := alone(t)
	code, out := runDoctor(t, f)
	require.Equal(t, exitBad, code)
	require.Contains(t, out, "bad   nats")
	f.Config.NatsURL = natstest.Start(t).URL()
	code, out = runDoctor(t, f)
	require.Equal(t, exitBad, code)
	require.Contains(t, out, "nothing of a fleet is here")
	require.Contains(t, out, "no process of the fleet answers")
}

// Commands for operators tell an owner so, with and without PINWHEEL_OWNER, and with either shipped configuration.
func TestCommandsOfOperatorsTellOwnersSo(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"users.conf", "accounts.conf"} {
		f := alone(t)
		f.Config.NatsURL, f.Config.NatsUser, f.Config.NatsPassword = natstest.StartConfigured(t,
			"../../../deploy/nats/"+file), "acme", "acme-secret"
		for _, owner := range []string{"", "acme"} {
			f.Config.Owner = owner
			for _, command := range []string{"doctor", "top --count 1", "workers rm acme/w", "resources apply"} {
				if owner != "" && (command == "workers rm acme/w" || command == "top --count 1") {
					continue // an owner may
				}
				r := f.Pinwheel(strings.Fields(command)...)
				require.NotZero(t, r.Code, command)
				require.Contains(t, r.Out+r.Err, "fleet's user", "%s of owner %q with %s", command, owner, file)
				require.Contains(t, r.Out+r.Err, doctor.ForOwners, "%s of owner %q with %s", command, owner, file)
				require.NotContains(t, r.Out+r.Err, "deadline")
			}
		}
	}
}
