//go:build browser

package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
)

const (
	longOwner  = "a-company-whose-name-is-as-long-as-names-may-be-in-this-fleet-00"
	longWorker = "turns-invoices-of-all-subsidiaries-into-one-monthly-statement-00"
	longEvent  = "2026-11-29T15:04:05.000000Z/urn:uuid:6e8bc430-9c3a-11d9-9669-0800200c9a66/invoices/monthly"
	longText   = "the bank of the customer answered 503 Service Unavailable to POST https://bank.example/v3/accounts/" +
		"CH9300762011623852957/transfers?idempotency-key=6e8bc4309c3a11d996690800200c9a66: upstream connect error or " +
		"disconnect/reset before headers"
	longJSON = `{"customer": {"name": "Großhandels- und Lagerhausgesellschaft Überlingen", "accounts": ["CH9300762011623852957",
		"DE89370400440532013000"]}, "lines": [{"sku": "A-1", "count": 3, "price": "12.50"}, {"sku": "B-2", "count": 1,
		"price": "7.00", "note": "` + evil2 + `"}], "token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"}`
	evil2 = `<script>globalThis.hurt = true</script>`
)

// manifestOfAll has each kind of thing that the page of a worker shows.
const manifestOfAll = `{"schedules": [
	{"name": "at-night", "cron": "0 3 * * *", "timeZone": "America/Argentina/ComodRivadavia"},
	{"name": "every-quarter-of-an-hour-of-a-working-day", "cron": "*/15 8-18 * * 1-5"}],
	"retries": {"maxAttempts": 3, "initialMs": 1, "maxMs": 1}, "concurrency": 20, "idempotent": true,
	"vars": {"GREETING": "hello", "REGION": "eu-central-1", "A_VARIABLE_WITH_A_RATHER_LONG_NAME": "1"},
	"secrets": ["BANK_PASS", "SIGNING_KEY_OF_THE_STATEMENTS"], "kv": {"SESSIONS": "sessions", "LIMITS": "limits"},
	"objects": {"STATEMENTS": "statements"}, "queues": {"MAIL": "mail"}, "services": {"PRICES": "prices"},
	"http": {"routes": ["statements.example/monthly", "statements.a-rather-long-host-name.example/monthly/:customer/:month"]}}`

// town fills a fleet as one is after a while: owners and workers with long names, versions with shares, tags and
// messages, letters with long JSON, with bytes and with nothing, schedules, events that wait, secrets, keys, objects,
// policies, jobs and audit records.
func town(t *testing.T) *fleettest.Fleet {
	t.Helper()
	key := filepath.Join(t.TempDir(), "secrets.key")
	keys := fleettest.Config(t)
	f := &fleettest.Fleet{Config: keys}
	require.Zero(t, f.Pinwheel("secrets", "keygen", key).Code)
	f = fleettest.Start(t, func(c *config.Config) {
		c.ControlToken, c.SecretsKey, c.Runs = "token-of-the-operators", key, "all"
	})
	people(t, f)
	statements(t, f)
	failures(t, f)
	for n := range 4 {
		runs(t, f, "send", "task", longOwner+"/"+longWorker, "--after", fmt.Sprintf("%dh", 1+30*n), "--no-wait", "--id",
			fmt.Sprintf("%s/%d", longEvent, n), "--data", longJSON)
	}
	waits(t, f)
	return f
}

const longStream = "INVOICES-OF-ALL-SUBSIDIARIES-AND-THEIR-MONTHLY-STATEMENTS"

// waits gives a worker sources of each kind and state, and pauses owners whose events wait.
func waits(t *testing.T, f *fleettest.Fleet) {
	t.Helper()
	js, err := jetstream.New(f.NC)
	require.NoError(t, err)
	for name, subject := range map[string]string{longStream: "invoices.>", "ORDERS": "orders.>", "GONE": "gone.>"} {
		_, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: name, Subjects: []string{subject}})
		require.NoError(t, err)
	}
	_, err = js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "FLAGS"})
	require.NoError(t, err)
	for _, owner := range []string{longOwner, "globex"} {
		runs(t, f, "owners", "set", owner, "--consume", "stream:*,kv:*,subject:sensors.>")
		build(t, f, owner, "reads-invoices", `export default { task(event) { return 1; } }`, `{"sources": [
			{"stream": "`+longStream+`", "subjects": ["invoices.monthly.of-a-subsidiary.>", "invoices.yearly.>"], "start": "all"},
			{"stream": "GONE"}, {"kv": "FLAGS"}, {"subject": "sensors.*.temperature"}]}`)
	}
	build(t, f, "globex", "taken", `export default { task() {} }`, `{"sources": [{"stream": "ORDERS", "start": "all"}]}`)
	for _, name := range []string{longOwner + "/mail", longOwner + "/reads-invoices", "umbrella"} {
		runs(t, f, "pause", name)
	}
	runs(t, f, "send", "task", "acme/mail", "--id", "ran", "--data", `"a"`)
	runs(t, f, "pause", "acme/mail", "--ticks", "skip")
	require.NoError(t, js.DeleteStream(t.Context(), "GONE"))
	runs(t, f, "owners", "set", "globex", "--consume", "stream:"+longStream+",stream:GONE,kv:FLAGS")
	for n := range 4 {
		_, err := js.Publish(t.Context(), "invoices.yearly."+strings.Repeat("x", n+1), []byte(longJSON))
		require.NoError(t, err)
		runs(t, f, "send", "task", longOwner+"/mail", "--no-wait", "--id", fmt.Sprintf("%s/held/%d", longEvent, n), "--data",
			longJSON, "--header", "X-Customer=Großhandel"+strings.Repeat(" lang", 40))
	}
}

func runs(t *testing.T, f *fleettest.Fleet, args ...string) {
	t.Helper()
	r := f.Pinwheel(args...)
	require.Zero(t, r.Code, "%v: %s", args, r.Err)
}

// people makes owners with policies, keys, objects and small workers.
func people(t *testing.T, f *fleettest.Fleet) {
	t.Helper()
	for n, owner := range []string{longOwner, "acme", "globex", "initech", "umbrella", "z"} {
		runs(t, f, "owners", "set", owner, "--weight", fmt.Sprint(n+1), "--max-running", "7", "--hosts",
			"statements.example,*.a-rather-long-host-name.example", "--cpu", "200ms", "--nats-publish", "orders.>,invoices.monthly.>")
		for _, name := range []string{"mail", "prices", "hello"} {
			build(t, f, owner, name, `export default { task(event) { console.log("mail to", event.payload); return 1; } }`, "{}")
		}
		runs(t, f, "kv", "put", owner+"/sessions", "user:42", "--value", "Ada")
	}
	file := filepath.Join(t.TempDir(), "statement.pdf")
	require.NoError(t, os.WriteFile(file, []byte(longText), 0o600))
	runs(t, f, "objects", "put", longOwner+"/statements", "2026/11/statement-of-a-customer-with-a-long-name.pdf", "--file", file)
}

func build(t *testing.T, f *fleettest.Fleet, owner, name, source, manifest string, more ...string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), name+".js")
	require.NoError(t, os.WriteFile(path, []byte(source), 0o600))
	require.NoError(t, os.WriteFile(strings.TrimSuffix(path, ".js")+".pinwheel.json", []byte(manifest), 0o600))
	f.Deploy(t, append([]string{path, "--owner", owner}, more...)...)
}

// statements deploys versions of a worker with all that one can have.
func statements(t *testing.T, f *fleettest.Fleet) {
	t.Helper()
	name := longOwner + "/" + longWorker
	for _, s := range []string{"BANK_PASS", "SIGNING_KEY_OF_THE_STATEMENTS"} {
		r := f.PinwheelWith("a-value-of-a-secret", "secrets", "set", longOwner, s)
		require.Zero(t, r.Code, r.Err)
	}
	for n := range 5 {
		build(t, f, longOwner, longWorker, fmt.Sprintf(`export default { fetch: () => new Response("%d"), scheduled() {},
			task(event) { console.log("a statement of", event.payload); console.warn(%q);
				throw new RangeError(event.payload.short ? "no" : %q); } }`, n, longText, longText), manifestOfAll,
			"--tag", fmt.Sprintf("9f1c%d5e2", n), "--message", fmt.Sprintf("try %d: %s", n, longText))
	}
	runs(t, f, "alias", "set", name, "staging", "3")
	runs(t, f, "alias", "set", name, "signed-off-by-the-accountants", "2")
	runs(t, f, "promote", name, "4@25%", "--message", "only a part: "+longText)
}

// failures makes dead letters of each kind of body, and a job that replays some in vain.
func failures(t *testing.T, f *fleettest.Fleet) {
	t.Helper()
	name := longOwner + "/" + longWorker
	file := filepath.Join(t.TempDir(), "bytes")
	require.NoError(t, os.WriteFile(file, []byte(strings.Repeat("\x00\xff\xfe\x01", 300)), 0o600))
	for n, more := range [][]string{
		{"--data", longJSON, "--id", longEvent, "--header", "X-Customer=Großhandel " + strings.Repeat("lang ", 40)},
		{"--data", `{"short": true}`}, {"--data-file", file, "--content-type", "application/octet-stream"}, {},
		{"--data", strings.ReplaceAll(longJSON, "\n", " ")}, {"--data", `"` + strings.Repeat("word ", 4000) + `"`},
	} {
		for range 1 + n%2*3 {
			r := f.Pinwheel(append([]string{"send", "task", name, "--timeout", "60s"}, more...)...)
			require.NotZero(t, r.Code, r.Out)
		}
	}
	js, err := jetstream.New(f.NC)
	require.NoError(t, err)
	for n := range 130 {
		publishLetter(t, js, manyLetters+n, n%6, fmt.Sprintf(`{"order":%d,"currency":"CHF","lines":[1,2,3]}`, n), longText)
	}
	<-js.PublishAsyncComplete()
	runs(t, f, "dead", "replay", "--owner", longOwner, "--worker", longWorker, "--force")
}
