package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// An owner pauses its own workers, and cannot resume what operators have paused. A policy that is removed leaves it.
func TestPauseCommands(t *testing.T) {
	t.Parallel()
	url := natstest.StartConfigured(t, "../../../deploy/nats/users.conf")
	f := fleettest.Start(t, func(c *config.Config) {
		c.NatsURL, c.NatsUser, c.NatsPassword, c.ReplyPrefixes = url, "fleet", "fleet-secret", config.List{"_INBOX.{owner}."}
	})
	path := filepath.Join(t.TempDir(), "w.js")
	require.NoError(t, os.WriteFile(path, []byte(`export default { task() { console.log("ran"); } }`), 0o600))
	f.Deploy(t, path, "--owner", "acme")
	owner := *f
	owner.Config.NatsUser, owner.Config.NatsPassword, owner.Config.Owner = "acme", "acme-secret", "acme"

	r := owner.Pinwheel("pause", "acme/w", "--ticks", "skip")
	require.Zero(t, r.Code, r.Err)
	require.Equal(t, "acme/w is paused in 1 process; 0 running\n", r.Out)
	require.Contains(t, owner.Pinwheel("paused", "--json").Out, `"skipTicks":true,"byOwner":true}`)
	require.Zero(t, f.Pinwheel("send", "task", "acme/w", "--no-wait", "--id", "e1", "--data", `{"n":1}`).Code)
	require.Eventually(t, func() bool {
		return strings.Contains(owner.Pinwheel("events", "ls", "acme/w").Out, " held ")
	}, time.Minute, 10*time.Millisecond)
	r = owner.Pinwheel("events", "show", "acme", "e1")
	require.Zero(t, r.Code, r.Err)
	require.Regexp(t, `(?s)^event +e1\nref +held:\d+\nstate +held\n.*header +Event-Id: e1\n.*body +7 bytes\n{"n":1}\n$`, r.Out)
	require.Equal(t, 1, owner.Pinwheel("events", "show", "acme", "none").Code)
	require.Equal(t, 1, owner.Pinwheel("events", "ls", "beta").Code, "another owner's")
	require.Contains(t, f.Pinwheel("doctor").Out, "1 owners and workers are paused")
	require.Contains(t, f.Pinwheel("top", "--count", "1", "--interval", "1s").Out, "Paused: acme/w")

	require.Zero(t, f.Pinwheel("pause", "acme").Code)
	r = owner.Pinwheel("resume", "acme")
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Err, "acme was paused by the fleet's operators")
	require.Zero(t, f.Pinwheel("owners", "set", "acme", "--weight", "2").Code)
	require.Zero(t, f.Pinwheel("owners", "rm", "acme").Code)
	require.Regexp(t, `(?s)acme +\S.*store +operator\nacme/w +\S.*skip +owner\n$`, f.Pinwheel("paused").Out)

	r = f.Pinwheel("resume", "acme")
	require.Equal(t, "acme is resumed; acme/w is still paused in 1 process; 0 running\n", r.Out)
	require.Zero(t, owner.Pinwheel("resume", "acme/w").Code)
	require.NotContains(t, f.Pinwheel("owners", "ls").Out, "acme", "nothing is left of a policy")
	require.Eventually(t, func() bool { return strings.Contains(f.Pinwheel("workers", "ls").Out, "acme") },
		time.Minute, time.Millisecond)
	for _, c := range []struct{ args, says string }{
		{"pause acme/w --ticks maybe", "store or skip"}, {"pause acme/*", "worker"}, {"pause */w", "owner"},
	} {
		r := f.Pinwheel(strings.Fields(c.args)...)
		require.Equal(t, 2, r.Code, c.args)
		require.Contains(t, r.Err, c.says)
	}
	r = f.Pinwheel("pause", "acme/none")
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Err, "none")
}
