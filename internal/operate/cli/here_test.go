package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
)

// With the fleet's token, processes handle the requests of a command. With another one, or none, the command handles
// them itself. It prints the same, and each change is recorded once by who has made it.
func TestCommandsWithAndWithoutTheToken(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t, func(c *config.Config) { c.ControlToken = "the-token-of-this-fleet" })
	path := filepath.Join(t.TempDir(), "w.js")
	require.NoError(t, os.WriteFile(path, []byte(`export default { task() { throw new Error("no") }, fetch: () => new Response("yes"), scheduled() {} }`), 0o600))
	require.NoError(t, os.WriteFile(strings.TrimSuffix(path, ".js")+".pinwheel.json",
		[]byte(`{"retries": {"maxAttempts": 1}, "schedules": [{"name": "night", "cron": "0 3 * * *"}]}`), 0o600))
	sources := map[string]string{}
	for source, token := range map[string]string{"control": f.Config.ControlToken, "command": "",
		"command of another": "another-token-than-this"} {
		as := *f
		as.Config.ControlToken = token
		owner := "of-" + strings.ReplaceAll(source, " ", "-")
		run := func(args ...string) string {
			t.Helper()
			r := as.Pinwheel(args...)
			require.Zero(t, r.Code, "%s %v: %s", source, args, r.Err)
			return strings.ReplaceAll(r.Out, owner, "OWNER")
		}
		run("deploy", path, "--owner", owner)
		require.Equal(t, "yes", run("send", "fetch", owner+"/w"))
		as.Pinwheel("send", "task", owner+"/w")
		hasLetter(t, &as, owner)
		require.Regexp(t, `(?m)^\d+ +\S+ \S+ +OWNER/w +task +exception`, run("dead", "ls", "--owner", owner))
		require.Regexp(t, `^\d+ OWNER/w task exception\n1 removed\n$`, run("dead", "rm", "--owner", owner))
		require.Equal(t, "paused night of OWNER/w\n", run("schedules", "pause", owner+"/w", "night"))
		require.Contains(t, run("kv", "put", owner+"/n", "k", "--value", "v"), "set k of OWNER/n, 1 bytes")
		require.Equal(t, "v", run("kv", "get", owner+"/n", "k"))
		require.Contains(t, run("owners", "set", owner, "--weight", "3", "--cpu", "2s"), "cpu 2s")
		require.Contains(t, run("owners", "set", owner, "--weight", "0"), "cpu 2s", "what is not named stays")
		require.Contains(t, run("workers", "show", owner+"/w"), "bytes bundled")
		require.Equal(t, "removed OWNER/w; no events wait for it\n", run("workers", "rm", owner+"/w"))
		var actions []string
		for line := range strings.Lines(run("audit", owner, "--json")) {
			var r struct{ Source, Action string }
			require.NoError(t, json.Unmarshal([]byte(line), &r))
			actions = append(actions, r.Action)
			sources[source] = r.Source
		}
		require.Equal(t, []string{"versions.deploy", "dead.purge", "schedules.pause", "kv.put", "owners.set", "owners.set",
			"workers.rm"}, actions, source)
	}
	require.Equal(t, map[string]string{"control": "control", "command": "command", "command of another": "command"},
		sources)
}

// throwing makes the file of a worker w whose tasks fail at once.
func throwing(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "w.js")
	require.NoError(t, os.WriteFile(path, []byte(`export default { task() { throw new Error("no") } }`), 0o600))
	require.NoError(t, os.WriteFile(strings.TrimSuffix(path, ".js")+".pinwheel.json",
		[]byte(`{"retries": {"maxAttempts": 1}}`), 0o600))
	return path
}

// hasLetter waits until an event of an owner's w is a dead letter: its reply comes before.
func hasLetter(t *testing.T, f *fleettest.Fleet, owner string) {
	t.Helper()
	require.Eventually(t, func() bool {
		return strings.Contains(f.Pinwheel("dead", "ls", "--owner", owner).Out, owner+"/w")
	}, patience, 10*time.Millisecond)
}

// The shell completes owners, workers, versions and letters.
func TestCompletion(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	path := throwing(t)
	f.Deploy(t, path, "--owner", "acme")
	f.Deploy(t, path, "--owner", "beta")
	f.Pinwheel("send", "task", "acme/w")
	hasLetter(t, f, "acme")
	for want, args := range map[string][]string{
		"^acme\n:4\n$":              {"audit", "a"},
		"^acme/w\nbeta/w\n:4\n$":    {"workers", "show", ""},
		`^1-[0-9a-f]{12}\t.*\n:4\n`: {"rollback", "acme/w", ""},
		"^beta\n:4\n$":              {"workers", "ls", "--owner", "b"},
		`^:4\n`:                     {"workers", "show", "acme/w", ""},
	} {
		r := f.Pinwheel(append([]string{"__complete"}, args...)...)
		require.Regexp(t, want, r.Out, "%v: %s", args, r.Err)
	}
	r := f.Pinwheel("__complete", "dead", "show", "")
	require.Contains(t, r.Out, "1\tacme/w exception: Error: no\n", r.Err)
}

// The shell completes flags that name versions, the names of versions, and where letters can be replayed.
func TestCompletionOfVersionsAndTargets(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	path := throwing(t)
	f.Deploy(t, path, "--owner", "acme")
	f.Deploy(t, path, "--owner", "acme", "--name", "other")
	f.Deploy(t, path, "--owner", "beta")
	require.Zero(t, f.Pinwheel("alias", "set", "acme/w", "staging", "1").Code)
	f.Pinwheel("send", "task", "acme/w")
	hasLetter(t, f, "acme")
	for want, args := range map[string][]string{
		`^1-[0-9a-f]{12}\t.*\nstaging\t.*\n:4\n$`: {"workers", "show", "acme/w", "--version", ""},
		`^staging\t.*\n:4\n$`:                     {"send", "task", "acme/w", "--version", "st"},
		`^staging\t1-[0-9a-f]{12}\n:4\n$`:         {"alias", "rm", "acme/w", ""},
		`^other\nw\n:4\n$`:                        {"dead", "replay", "1", "--to", ""},
		`^w@1-[0-9a-f]{12}\t.*\n:4\n$`:            {"dead", "replay", "1", "--to", "w@1"},
		`^@1-[0-9a-f]{12}\t.*\n@staging\t.*\n:4`:  {"dead", "replay", "1", "--to", "@"},
		`^:4\n$`:                                  {"dead", "replay", "--to", ""},
	} {
		r := f.Pinwheel(append([]string{"__complete"}, args...)...)
		require.Regexp(t, want, r.Out, "%v: %s", args, r.Err)
	}
}
