package cli_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// A deploy reports which variables and queues are gone. A version is shown by its number. The removal of a worker
// reports which events wait for it.
func TestWorkersSayWhatIsLost(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	path := filepath.Join(t.TempDir(), "w.js")
	source := func(code string) { require.NoError(t, os.WriteFile(path, []byte(code), 0o600)) }
	source(`export default { task: (event, env) => "one " + env.A }`)
	f.Deploy(t, path, "--owner", "acme", "--var", "A=1", "--var", "B=2", "--queue", "JOBS=w")
	source(`export default { task: (event, env) => "two " + env.A }`)
	r := f.Pinwheel("deploy", path, "--owner", "acme", "--var", "A=1")
	require.Zero(t, r.Code, r.Err)
	require.Regexp(t, `^warning: env.B of version 1-\S+ is gone: name it with --var at each deploy, or in the manifest
warning: env.JOBS of version 1-\S+ is gone: name it with --queue at each deploy, or in the manifest
$`, r.Err)
	require.Empty(t, f.Pinwheel("deploy", path, "--owner", "acme", "--var", "A=1").Err, "nothing changed")

	require.Regexp(t, `(?m)^version +1-`, f.Pinwheel("workers", "show", "acme/w", "--version", "1").Out)
	require.Contains(t, f.Pinwheel("workers", "show", "acme/w", "--version", "1", "--code").Out, "one ")
	require.Contains(t, f.Pinwheel("workers", "show", "acme/w", "--version", "3").Err, `acme/w has no version "3"`)
	require.Contains(t, f.Pinwheel("send", "task", "acme/w", "--version", "2").Out, "two 1")
	require.Contains(t, f.Pinwheel("send", "fetch", "acme/w", "--header", "Worker-Version=1").Err,
		"--header Worker-Version: use --version")

	require.Zero(t, f.Pinwheel("send", "task", "acme/w", "--after", "1h", "--no-wait").Code)
	require.Eventually(t, func() bool { return f.Pinwheel("schedules", "waiting", "--json").Out != "" }, time.Minute,
		10*time.Millisecond)
	awaitNoEvents(t, f) // it is in the other stream before its ack
	r = f.Pinwheel("workers", "rm", "acme/w")
	require.Zero(t, r.Code, r.Err)
	require.Equal(t, "removed acme/w; waiting for it: 0 stored, 0 parked, 1 delayed; fetch events will be answered 404, tasks and scheduled events become dead letters\n", r.Out)
	require.Contains(t, f.Pinwheel("workers", "rm", "acme/w").Err, "'pinwheel workers ls' lists them")
}

// An owner sends events with its own user, which may not use $JS.API.
func TestOwnersSendWithTheirOwnPermissions(t *testing.T) {
	t.Parallel()
	url := natstest.StartConfigured(t, "../../../deploy/nats/users.conf")
	f := fleettest.Start(t, func(c *config.Config) {
		c.NatsURL, c.NatsUser, c.NatsPassword, c.ReplyPrefixes = url, "fleet", "fleet-secret", config.List{"_INBOX.{owner}."}
	})
	path := filepath.Join(t.TempDir(), "w.js")
	require.NoError(t, os.WriteFile(path, []byte(`export default { fetch: async r => new Response("hello " + await r.text()), task: e => e.text() }`), 0o600))
	f.Deploy(t, path, "--owner", "acme")
	owner := *f
	owner.Config.NatsUser, owner.Config.NatsPassword = "acme", "acme-secret"
	for _, c := range []struct{ args, want string }{
		{"fetch", "hello x"}, {"task", `{"success":true,"data":"x"}`},
	} {
		r := owner.Pinwheel("send", c.args, "acme/w", "--data", "x")
		require.Zero(t, r.Code, r.Err)
		require.Equal(t, c.want, r.Out)
	}
	require.Zero(t, owner.Pinwheel("send", "task", "acme/w", "--no-wait").Code)
	r := owner.Pinwheel("send", "task", "beta/w", "--timeout", "1s")
	require.NotZero(t, r.Code)
	require.Contains(t, r.Err, "ermissions")
}
