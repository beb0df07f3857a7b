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
)

// startWithKey starts a fleet that has a key for secrets.
func startWithKey(t *testing.T) *fleettest.Fleet {
	t.Helper()
	key := filepath.Join(t.TempDir(), "secrets.key")
	r := alone(t).Pinwheel("secrets", "keygen", key)
	require.Zero(t, r.Code, r.Err)
	require.Regexp(t, `^public key: age1\S+\n$`, r.Out)
	f := fleettest.Start(t, func(c *config.Config) { c.SecretsKey = key })
	f.Config.SecretsKey = ""
	return f
}

func TestSecretsUsage(t *testing.T) {
	t.Parallel()
	f := alone(t)
	for _, c := range []struct {
		args        []string
		stdin, want string
	}{
		{[]string{"secrets"}, "", "secrets needs a command: set, ls, rm, rotate, keygen"},
		{[]string{"secrets", "set", "acme/shop"}, "", "accepts 2 arg(s), received 1"},
		{[]string{"secrets", "set", "acme/shop", "KEY", "value"}, "", "accepts 2 arg(s), received 3"},
		{[]string{"secrets", "set", "acme/", "KEY"}, "v", "acme/: write OWNER/WORKER, or OWNER for all of the owner's workers"},
		{[]string{"secrets", "set", "a.b", "KEY"}, "v", `owner "a.b": a name is`},
		{[]string{"secrets", "set", "acme/=", "KEY"}, "v", `worker "=": a name is`},
		{[]string{"secrets", "set", "acme/shop", "1KEY"}, "v", "1KEY is no name in env"},
		{[]string{"secrets", "set", "acme/shop", "KEY"}, "", "the value is empty: it is 1 to 16384 bytes"},
		{[]string{"secrets", "set", "acme/shop", "KEY"}, "\n", "the value is empty"},
		{[]string{"secrets", "set", "acme/shop", "KEY"}, strings.Repeat("x", 16<<10+1),
			"the value has more than 16384 bytes"},
		{[]string{"secrets", "set", "acme/shop", "KEY"}, "\xff", "the value is not UTF-8"},
		{[]string{"secrets", "set", "acme/shop", "KEY", "--recipient", "age1"}, "v",
			`--recipient "age1": it is the public key`},
		{[]string{"secrets", "rm", "acme/shop", "a-b"}, "", "a-b is no name in env"},
		{[]string{"secrets", "ls", "a b"}, "", `owner "a b": a name is`},
		{[]string{"deploy", write(t, "w.js", "export default { fetch() {} }"), "--owner", "a", "--var", "API_KEY=s3cret"}, "",
			`--var API_KEY looks like a secret: make it one ("secrets": ["API_KEY"] in the manifest, and 'pinwheel secrets set', or .dev.vars for 'pinwheel dev'), or add --plain API_KEY`},
		{[]string{"deploy", write(t, "w.js", ""), "--owner", "a", "--var", "B_TOKEN=s3cret", "--var", "API_KEY=s3cret"}, "",
			`--var API_KEY, B_TOKEN look like secrets: make them secrets ("secrets": ["API_KEY", "B_TOKEN"] in the manifest, and 'pinwheel secrets set', or .dev.vars for 'pinwheel dev'), or add --plain API_KEY --plain B_TOKEN`},
		{[]string{"dev", write(t, "w.js", ""), "--var", "DB_HOST=s3cret"}, "", "--var DB_HOST looks like a secret"},
	} {
		r := f.PinwheelWith(c.stdin, c.args...)
		require.Equal(t, 2, r.Code, "%q: %s", c.args, r.Err)
		require.Contains(t, r.Err, "pinwheel: "+c.want, "%q", c.args)
		require.NotContains(t, r.Err, "s3cret")
	}
}

// A deploy that names a missing secret says how to set it. A var that looks like a secret is refused with its place in
// the manifest, unless it is named plain.
func TestDeployWithSecrets(t *testing.T) {
	t.Parallel()
	f := startWithKey(t)
	dir := t.TempDir()
	path, manifest := filepath.Join(dir, "shop.js"), filepath.Join(dir, "shop.pinwheel.json")
	save := func(text string) { require.NoError(t, os.WriteFile(manifest, []byte(text), 0o600)) }
	require.NoError(t, os.WriteFile(path, []byte(`export default { fetch: (request, env) => new Response([env.STRIPE_KEY, env.SHARED, env.DB_HOST].join()) }`), 0o600))

	save("{\n  \"vars\": {\"A\": \"1\", \"DB_HOST\": \"s3cret\"}\n}")
	r := f.Pinwheel("deploy", path, "--owner", "acme")
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Err, manifest+`:2:22: vars.DB_HOST looks like a secret: make it one ("secrets": ["DB_HOST"], and 'pinwheel secrets set'), or name it in "plain"`)
	save("{\n  \"secrets\": [\"STRIPE_KEY\", \"DB_HOST\"],\n  \"vars\": {\"DB_HOST\": \"x\"}, \"plain\": [\"DB_HOST\"]\n}")
	r = f.Pinwheel("deploy", path, "--owner", "acme")
	require.Contains(t, r.Err, manifest+":2:29: secrets[1] DB_HOST is a var too: a name in env is one thing")

	save(`{"secrets": ["STRIPE_KEY", "SHARED"], "vars": {"DB_HOST": "db.example"}, "plain": ["DB_HOST"]}`)
	r = f.Pinwheel("deploy", path, "--owner", "acme")
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Err, "acme/shop is refused: it names secrets that are not set: STRIPE_KEY, SHARED; 'pinwheel secrets set acme/shop NAME' sets one")
	require.Zero(t, f.PinwheelWith("everybody's", "secrets", "set", "acme", "SHARED").Code)
	r = f.Pinwheel("deploy", path, "--owner", "acme")
	require.Contains(t, r.Err, "acme/shop is refused: it names the secret STRIPE_KEY, which is not set; 'pinwheel secrets set acme/shop STRIPE_KEY' sets it")
	require.Equal(t, "WORKER  VERSION  HANDLERS  DEPLOYED\n", f.Pinwheel("workers", "ls").Out, "nothing was stored")

	r = f.PinwheelWith("sk_live\r\n", "secrets", "set", "acme/shop", "STRIPE_KEY")
	require.Regexp(t, `^acme/shop STRIPE_KEY is set, encrypted to age1\S+\n$`, r.Out)
	f.Deploy(t, path, "--owner", "acme")
	require.Eventually(t, func() bool {
		return f.Pinwheel("send", "fetch", "acme/shop").
			Out == "sk_live,everybody's,db.example"
	}, time.Minute, 5*time.Millisecond)
	f.Deploy(t, path, "--owner", "acme", "--name", "shop", "--var", "STRIPE_KEY_FILE=x", "--plain", "STRIPE_KEY_FILE")
	require.Regexp(t, `\nsecrets +STRIPE_KEY, SHARED\n`, f.Pinwheel("workers", "show", "acme/shop").Out)
}

func TestSecretsWithoutAFleet(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	r := f.PinwheelWith("v", "secrets", "set", "acme", "KEY")
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Err, "no process of the fleet has a key: make one with 'pinwheel secrets keygen FILE'")
	recipient := strings.TrimPrefix(strings.TrimSpace(f.Pinwheel("secrets", "keygen", filepath.Join(t.TempDir(), "k")).
		Out), "public key: ")
	r = f.PinwheelWith("v", "secrets", "set", "acme", "KEY", "--recipient", recipient)
	require.Zero(t, r.Code, r.Err)
	r = f.Pinwheel("secrets", "ls", "acme")
	require.Regexp(t, `acme +KEY +\S+ \S+ +nothing here: this process has no PINWHEEL_SECRETS_KEY\n$`, r.Out)
	r = f.Pinwheel("secrets", "rm", "acme", "NONE")
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Err, "no such secret: acme NONE")
}
