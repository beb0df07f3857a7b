package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/env/secrets"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// An owner uses the same commands with its own NATS user, and gets what the fleet's user gets for this owner.
func TestCommandsOfOwners(t *testing.T) {
	t.Parallel()
	url := natstest.StartConfigured(t, "../../../deploy/nats/users.conf")
	f := fleettest.Start(t, func(c *config.Config) {
		c.NatsURL, c.NatsUser, c.NatsPassword, c.ReplyPrefixes = url, "fleet", "fleet-secret", config.List{"_INBOX.{owner}."}
	})
	dir := t.TempDir()
	path := filepath.Join(dir, "w.js")
	require.NoError(t, os.WriteFile(path, []byte(`export default { task(event) { console.log("task"); if (event.payload.bad) { event.noRetry(); throw new Error("bad"); } }, scheduled() {} }`), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "w.pinwheel.json"),
		[]byte(`{"schedules":[{"name":"night","cron":"0 3 * * *"}]}`), 0o600))
	for _, owner := range []string{"acme", "beta"} {
		f.Deploy(t, path, "--owner", owner, "--var", "A=secret")
		require.Equal(t, 1, f.Pinwheel("send", "task", owner+"/w", "--data", `{"bad":1}`).Code)
		require.Zero(t, f.Pinwheel("send", "task", owner+"/w", "--after", "1h", "--no-wait", "--id", "later").Code)
	}
	require.Eventually(t, func() bool {
		return strings.Count(f.Pinwheel("schedules", "waiting", "--json").Out,
			"\n") == 2
	}, time.Minute, 10*time.Millisecond)
	require.Eventually(t, func() bool { return strings.Count(f.Pinwheel("dead", "ls", "--json").Out, "\n") == 2 },
		time.Minute, 10*time.Millisecond)

	owner := *f
	owner.Config.NatsUser, owner.Config.NatsPassword, owner.Config.Owner = "acme", "acme-secret", "acme"
	owner.Config.ReplyPrefixes = config.Default().ReplyPrefixes // the owner need not know what the fleet has
	for _, args := range []string{
		"workers ls --owner acme", "workers ls --owner acme --json", "workers show acme/w", "workers show acme/w --json",
		"schedules ls --owner acme", "schedules ls --owner acme --json", "schedules waiting --owner acme",
		"schedules waiting --owner acme --json",
		"dead ls --owner acme", "dead ls --owner acme --json", "dead ls --worker acme/w --limit 1",
		"dead replays --owner acme --json",
		"versions ls acme/w", "versions ls acme/w --json", "deployments ls acme/w", "deployments ls acme/w --json",
		"schedules pause acme/w night", "schedules ls --owner acme", "schedules resume acme/w night",
	} {
		want, got := f.Pinwheel(strings.Fields(args)...), owner.Pinwheel(strings.Fields(args)...)
		require.Zero(t, got.Code, "%s: %s", args, got.Err)
		require.Equal(t, want.Out, got.Out, args)
	}
	for _, c := range [][2]string{
		{"alias set acme/w next 1", `^alias next set: acme/w: 1-\S+ 100 %, active in 1 of 1 process\n$`},
		{"promote acme/w next", `^unchanged acme/w: 1-`},
		{"alias rm acme/w next --json", `"changed":true,"deployment":.*"active":1,"processes":1`},
	} {
		r := owner.Pinwheel(strings.Fields(c[0])...)
		require.Zero(t, r.Code, "%s: %s", c[0], r.Err)
		require.Regexp(t, c[1], r.Out)
	}
	r := owner.Pinwheel("top", "--count", "1", "--interval", "200ms")
	require.Zero(t, r.Code, r.Err)
	require.Regexp(t, `owner acme in 1 process\n[^$]*acme/w .* (idle|offline)`, r.Out)
	require.NotContains(t, r.Out, "beta")
	r = owner.Pinwheel("top", "--count", "1", "--interval", "200ms", "--json")
	require.Regexp(t, `"owner":"acme",.*"eventsPerSecond":\d.*"processes":1,"workers":\[\{"worker":"acme/w"`, r.Out, r.Err)
	require.NotContains(t, r.Out, "beta")
	id := regexp.MustCompile(`"id":(\d+)`).FindStringSubmatch(owner.Pinwheel("dead", "ls", "--json").Out)[1]
	require.Equal(t, f.Pinwheel("dead", "show", id).Out, owner.Pinwheel("dead", "show", id).Out)
	require.Equal(t, f.Pinwheel("dead", "show", id, "--json").Out, owner.Pinwheel("dead", "show", id, "--json").Out)

	r = owner.Pinwheel("dead", "edit", id, "--patch", `{"bad":null}`)
	require.Zero(t, r.Code, r.Err)
	require.Regexp(t, `^`+id+` is (\d+) now\n$`, r.Out)
	r = owner.Pinwheel("dead", "replay", "--all")
	require.Regexp(t, `^\d+ acme/w task exception\n1 replayed\n$`, r.Out, r.Err)
	require.Eventually(t, func() bool { return strings.Contains(owner.Pinwheel("dead", "replays").Out, "succeeded") },
		time.Minute, 10*time.Millisecond)
	r = owner.Pinwheel("dead", "rm", "--all")
	require.Equal(t, "0 removed\n", r.Out, r.Err)
	require.Equal(t, 1, strings.Count(f.Pinwheel("dead", "ls", "--json").Out, "\n"), "beta's letter is there")
	r = owner.Pinwheel("schedules", "cancel", "acme/w", "later")
	require.Equal(t, "cancelled 1\n", r.Out, r.Err)
	out := tailed(t, owner.Config, "task", func() { owner.Pinwheel("send", "task", "acme/w", "--data", "{}") }, "acme/w",
		"--logs")
	require.Contains(t, out, "acme/w  task")

	// Each change is in the audit stream, with who made it: as NATS or the subject tells, and as the command says.
	changes := owner.Pinwheel("audit")
	require.Zero(t, changes.Code, changes.Err)
	require.Equal(t, f.Pinwheel("audit", "acme").Out, changes.Out)
	for _, want := range []string{
		`acme +versions.deploy +fleet of \S+ "\S+@\S+" +command \S+ +\{"percent":100,"version":"1-\w+","worker":"acme/w"\}`, `acme +schedules.pause +fleet of`,
		`acme +dead.edit +owner acme "\S+@\S+" +owner-api \S+ +\{"id":` + id + `,"with":\["patch"\]\}`, `acme +dead.replay +owner acme .*\{"all":true,`,
		`acme +schedules.cancel +owner acme`,
	} {
		require.Regexp(t, want, changes.Out)
	}
	require.NotContains(t, changes.Out, "beta")
	require.Equal(t, 2, strings.Count(f.Pinwheel("audit", "--json").Out, `"action":"versions.deploy"`))
	require.Empty(t, owner.Pinwheel("audit", "--since", "0s", "--json").Out)

	foreign := regexp.MustCompile(`"id":(\d+)`).FindStringSubmatch(f.Pinwheel("dead", "ls", "--json").Out)[1]
	for _, c := range []struct {
		args, want string
		code       int
	}{
		{"workers ls --owner beta", `owner "beta" is not of owner acme, whose API this is`, 1},
		{"workers show beta/w", `worker "beta/w" is not of owner acme`, 1},
		{"dead ls --owner beta", `owner "beta" is not of owner acme`, 1},
		{"dead show " + foreign, "no such dead letter: " + foreign + "; 'pinwheel dead ls' lists them", 1},
		{"dead rm " + foreign, "no such dead letter: " + foreign, 1},
		{"rollback beta/w", `worker "beta/w" is not of owner acme`, 1},
		{"rollback acme/w", "no version had everything before", 1},
		{"versions show acme/w 9", "9", 1},
		{"versions show beta/w 1", `worker "beta/w" is not of owner acme`, 1},
		{"versions diff beta/w 1", `worker "beta/w" is not of owner acme`, 1},
		{"workers show beta/w --code", `worker "beta/w" is not of owner acme`, 1},
		{"schedules pause beta/w night", `worker "beta/w" is not of owner acme`, 1},
		{"audit beta", `owner "beta" is not of owner acme`, 1},
		{"tail beta", `owner "beta" is not of owner acme`, 1},
		{"workers rm beta/w", `worker "beta/w" is not of owner acme`, 1},
		{"deploy " + path + " --owner beta", "--owner is beta, and PINWHEEL_OWNER says that this is owner acme", 2},
		{"owners ls", "is for the fleet's user", 2},
	} {
		r := owner.Pinwheel(strings.Fields(c.args)...)
		require.Equal(t, c.code, r.Code, "%s: %s", c.args, r.Err)
		require.Contains(t, r.Err, c.want, c.args)
	}
	beta := owner
	beta.Config.NatsUser, beta.Config.NatsPassword = "beta", "beta-secret"
	require.Contains(t, beta.Pinwheel("tail", "acme").Err, "Permissions Violation", "it may not read the feed")
	owner.Config.Owner = "a.b"
	require.Contains(t, owner.Pinwheel("workers", "ls").Err, `PINWHEEL_OWNER is "a.b": it is the name of an owner`)
}

// An owner sets, lists and removes its own secrets. The fleet decrypts none for a list.
func TestSecretsOfOwners(t *testing.T) {
	t.Parallel()
	key := filepath.Join(t.TempDir(), "key")
	recipient, err := secrets.Create(key)
	require.NoError(t, err)
	url := natstest.StartConfigured(t, "../../../deploy/nats/users.conf")
	f := fleettest.Start(t, func(c *config.Config) {
		c.NatsURL, c.NatsUser, c.NatsPassword, c.ReplyPrefixes, c.SecretsKey = url, "fleet", "fleet-secret", config.List{
			"_INBOX.{owner}."}, key
	})
	path := filepath.Join(t.TempDir(), "w.js")
	require.NoError(t, os.WriteFile(path, []byte(`export default { fetch: (r, env) => new Response(env.API_KEY) }`), 0o600))
	require.NoError(t, os.WriteFile(strings.TrimSuffix(path, ".js")+".pinwheel.json", []byte(`{"secrets": ["API_KEY"]}`),
		0o600))
	owner := *f
	owner.Config.NatsUser, owner.Config.NatsPassword, owner.Config.Owner, owner.Config.SecretsKey =
		"acme", "acme-secret", "acme", ""
	r := owner.PinwheelWith("s3cret value\n", "secrets", "set", "acme/w", "API_KEY")
	require.Equal(t, "acme/w API_KEY is set, encrypted to "+recipient+"\n", r.Out, r.Err)
	f.Deploy(t, path, "--owner", "acme")
	require.Equal(t, "s3cret value", f.Pinwheel("send", "fetch", "acme/w").Out)
	require.Regexp(t, `(?m)^acme/w +API_KEY +\S+ \S+ +-$`, owner.Pinwheel("secrets", "ls", "acme").Out)
	require.Regexp(t, `(?m)^acme/w +API_KEY +\S+ \S+ +age1`, f.Pinwheel("secrets", "ls", "acme").Out)
	for want, args := range map[string][]string{
		`owner "beta" is not of owner acme`:    {"secrets", "set", "beta/w", "API_KEY"},
		`"beta" is not of owner acme`:          {"secrets", "ls", "beta"},
		"--force removes it":                   {"secrets", "rm", "acme/w", "API_KEY"},
		"this command is for the fleet's user": {"secrets", "rotate"},
	} {
		r := owner.PinwheelWith("x", args...)
		require.NotZero(t, r.Code, args)
		require.Contains(t, r.Err, want, args)
	}
	r = owner.Pinwheel("secrets", "rm", "acme/w", "API_KEY", "--force")
	require.Equal(t, "acme/w API_KEY is removed\n", r.Out, r.Err)
	require.NotContains(t, owner.Pinwheel("audit").Out, "s3cret")
	require.Contains(t, owner.Pinwheel("audit").Out, "secrets.set")
}

// An owner deploys, gives shares, rolls back and removes with its own NATS user. The command prints what it prints for
// the fleet's user.
func TestDeploysOfOwners(t *testing.T) {
	t.Parallel()
	url := natstest.StartConfigured(t, "../../../deploy/nats/users.conf")
	f := fleettest.Start(t, func(c *config.Config) {
		c.NatsURL, c.NatsUser, c.NatsPassword, c.ReplyPrefixes = url, "fleet", "fleet-secret", config.List{"_INBOX.{owner}."}
	})
	owner := *f
	owner.Config.NatsUser, owner.Config.NatsPassword, owner.Config.Owner = "acme", "acme-secret", "acme"
	owner.Config.ReplyPrefixes = config.Default().ReplyPrefixes
	dir := t.TempDir()
	path := filepath.Join(dir, "w.ts")
	write := func(text string) {
		t.Helper()
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	// both deploys as the owner and as the fleet's user for another owner, and compares what they print.
	both := func(code int, args ...string) (out, errs string) {
		t.Helper()
		args = append([]string{"deploy", path}, args...)
		var got, want fleettest.Result
		var running sync.WaitGroup
		running.Go(func() { got = owner.Pinwheel(args...) })
		running.Go(func() { want = f.Pinwheel(append(slices.Clone(args), "--owner", "beta")...) })
		running.Wait()
		require.Equal(t, code, want.Code, want.Err)
		same := strings.NewReplacer("beta/w", "acme/w")
		times := regexp.MustCompile(`"(at|by)":"[^"]*"`)
		require.Equal(t, times.ReplaceAllString(same.Replace(want.Out), ""), times.ReplaceAllString(got.Out, ""), got.Err)
		require.Equal(t, same.Replace(want.Err), got.Err)
		require.Equal(t, code, got.Code, got.Err)
		return got.Out, got.Err
	}
	const fetch = "export default { fetch: (r: Request, env: any) => new Response(`%d ${env.A}`) }"
	write("console.log('loading');\n" + strings.Replace(fetch, "%d", "1", 1))
	out, errs := both(0, "--var", "A=x", "--dry-run")
	require.Contains(t, out, "would deploy acme/w version 1-")
	require.Contains(t, errs, "info: acme/w: loading")
	both(0, "--var", "A=x", "--tag", "one")
	out, _ = both(0, "--var", "A=x")
	require.Contains(t, out, "unchanged acme/w version 1-")
	require.Equal(t, "1 x", owner.Pinwheel("send", "fetch", "acme/w").Out)
	write(strings.Replace(fetch, "%d", "2", 1))
	_, errs = both(0, "--upload-only")
	require.Contains(t, errs, "warning: env.A of version 1-")
	both(0, "--percent", "50%", "--json")
	both(1, "--percent", "50%", "--var", "A=other") // two versions share the events already
	write("export default {\n  fetch() { return missing }\n}\nmissing.x;")
	_, errs = both(1)
	require.Contains(t, errs, path+":4:1: acme/w is refused: ReferenceError")
	write("export default { fetch() {")
	both(1)
	write(strings.Replace(fetch, "%d", "3", 1))
	r := owner.Pinwheel("deploy", path, "--var", "API_KEY=x")
	require.Equal(t, 2, r.Code)
	require.Contains(t, r.Err, "--var API_KEY looks like a secret")
	require.Zero(t, owner.Pinwheel("deploy", path, "--var", "API_KEY=x", "--plain", "API_KEY", "--name", "plain").Code)
	r = owner.Pinwheel("rollback", "acme/w")
	require.Zero(t, r.Code, r.Err)
	require.Zero(t, f.Pinwheel("rollback", "beta/w").Code)
	out, _ = both(0, "--gradual", "10%@1s", "--message", "carefully")
	require.Contains(t, out, " has everything\n")
	require.Contains(t, owner.Pinwheel("versions", "ls", "acme/w").Out, "carefully")

	// Code that does not fit a message, and not a record either.
	write("const long = `" + strings.Repeat("0123456789abcdef", 100_000) + "`; export default { fetch: () => new Response(String(long.length)) }")
	both(0)
	require.Equal(t, "1600000", owner.Pinwheel("send", "fetch", "acme/w").Out)
	for _, args := range []string{
		"workers show acme/w --code", "versions show acme/w 1", "versions show acme/w 1 --json",
		"versions show acme/w 2 --code", "versions diff acme/w 1 2", "versions diff acme/w 2",
	} {
		want, got := f.Pinwheel(strings.Fields(args)...), owner.Pinwheel(strings.Fields(args)...)
		require.Zero(t, got.Code, "%s: %s", args, got.Err)
		require.NotEmpty(t, got.Out, args)
		require.True(t, want.Out == got.Out, "%s: %.2000s and %.2000s", args, want.Out, got.Out)
	}

	require.Regexp(t, `acme +versions.deploy +owner acme "\S+@\S+" +owner-api \S+ +\{"percent":100,"version":"1-\w+","worker":"acme/w"\}`, owner.Pinwheel("audit").Out)
	r = owner.Pinwheel("workers", "rm", "acme/w")
	require.Equal(t, "removed acme/w; no events wait for it\n", r.Out, r.Err)
	require.Contains(t, owner.Pinwheel("workers", "rm", "acme/w").Err, "no such worker")
	require.Contains(t, owner.Pinwheel("audit").Out, "workers.rm")
}
