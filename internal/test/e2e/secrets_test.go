package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/common/expfmt"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/deploy/bundle"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/env/secrets"
	"github.com/pinwheel-run/pinwheel/internal/operate/cli"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/process/fleet"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// newKey makes a key for secrets, and returns its file and its recipient.
func newKey(t testing.TB) (path, recipient string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "secrets.key")
	recipient, err := secrets.Create(path)
	require.NoError(t, err)
	return path, recipient
}

// withKey gives a process this key.
func withKey(path string) func(*config.Config) { return func(c *config.Config) { c.SecretsKey = path } }

const secretsToken = "a-token-for-tests-of-secrets"

// command runs the pinwheel command against the fleet, with text on its standard input.
func (h *testFleet) command(stdin string, args ...string) (code int, out, errs string) {
	h.t.Helper()
	cfg := h.fleet.Config()
	cfg.NatsURL, cfg.SecretsKey = h.fleet.URL(), "" // the command has no key
	var o, e bytes.Buffer
	code = cli.MainWith(cfg, args, strings.NewReader(stdin), &o, &e)
	return code, o.String(), e.String()
}

// secret sets a secret.
func (h *testFleet) secret(scope, name, value string) {
	h.t.Helper()
	code, _, errs := h.command(value, "secrets", "set", scope, name)
	require.Zero(h.t, code, errs)
}

func (h *testFleet) call(target string) *events.Reply {
	h.t.Helper()
	return h.reply(h.send(events.Fetch, target, ""))
}

// answers waits until a call of the worker has this reply.
func (h *testFleet) answers(target, want string) {
	h.t.Helper()
	require.Eventually(h.t, func() bool { return string(h.call(target).Body) == want }, patience, 10*time.Millisecond,
		"%s does not answer %q", target, want)
}

// deployUnchecked stores a version, and does not wait for it.
func (h *testFleet) deployUnchecked(owner, name, code string, spec workers.Spec) *workers.Worker {
	h.t.Helper()
	store, err := deploy.Open(context.Background(), h.js, deploy.Config{})
	require.NoError(h.t, err)
	b := &bundle.Bundle{Code: code, File: name + ".js", SourceMap: []byte(`{"version":3}`), Spec: spec}
	d, err := store.Deploy(context.Background(), deploy.Request{Owner: owner, Name: name, Bundle: b}, h.check)
	require.NoError(h.t, err)
	return d.Worker
}

// versions are the active versions of a worker in the processes of a fleet, each of which answers.
func (h *testFleet) versions(target string, processes int) (all []string) {
	h.t.Helper()
	answers, err := h.nc.SubscribeSync(h.nc.NewInbox())
	require.NoError(h.t, err)
	defer func() { _ = answers.Unsubscribe() }()
	require.NoError(h.t, h.nc.PublishRequest("pinwheel.control.workers.active", answers.Subject,
		[]byte(`{"worker":"`+target+`"}`)))
	for range processes {
		m, err := answers.NextMsg(patience)
		require.NoError(h.t, err)
		var active control.ActiveVersion
		require.NoError(h.t, json.Unmarshal(m.Data, &active))
		all = append(all, active.Version)
	}
	return all
}

const keyWorker = `export default { fetch: (request, env) => new Response(env.KEY ?? "none") }`

// A secret is a string in env. A change reaches running workers, in every mode; one of the owner is for workers that
// have none of their own; without any the events fail.
func TestSecretsReachRunningWorkers(t *testing.T) {
	t.Parallel()
	key, _ := newKey(t)
	h := openFleet(t, withKey(key))
	for _, mode := range workers.Modes {
		name := "w-" + string(mode)
		target := "acme/" + name
		h.secret("acme", "KEY", "of the owner")
		h.deploy("acme", name, keyWorker, fmt.Sprintf(`{"mode": %q, "secrets": ["KEY"]}`, mode))
		require.Equal(t, "of the owner", string(h.call(target).Body))
		h.secret(target, "KEY", "first\n")
		h.answers(target, "first")
		h.secret(target, "KEY", "second")
		h.answers(target, "second")
		code, _, errs := h.command("", "secrets", "rm", target, "KEY")
		require.Zero(t, code, errs)
		h.answers(target, "of the owner")

		code, _, errs = h.command("", "secrets", "rm", "acme", "KEY")
		require.Equal(t, exitFailure, code)
		require.Regexp(t, `is named by .*`+target+`.*: their events would fail without it; --force removes it`, errs)
		code, _, errs = h.command("", "secrets", "rm", "acme", "KEY", "--force")
		require.Zero(t, code, errs)
		require.Eventually(t, func() bool { return string(h.call(target).Body) != "of the owner" }, patience,
			10*time.Millisecond)
		f := h.call(target)
		require.Equal(t, 500, f.Status)
		require.Contains(t, string(f.Body), "secret KEY of "+target+" is not set")
		require.Regexp(t, "events of "+target+` fail: version 1-\S+: secret KEY of `+target+" is not set",
			strings.Join(h.fleet.Stats().Secrets.Held, "\n"))
	}
}

// A version that names a secret which is not there yet waits. The version before it goes on.
func TestAVersionWaitsForItsSecrets(t *testing.T) {
	t.Parallel()
	key, recipient := newKey(t)
	h := openFleet(t, withKey(key))
	h.deploy("acme", "w", `export default { fetch: () => new Response("without") }`)
	w := h.deployUnchecked("acme", "w", keyWorker, workers.Spec{Secrets: []string{"KEY"}})
	require.Eventually(t, func() bool { return len(h.fleet.Stats().Secrets.Held) == 1 }, patience, time.Millisecond)
	require.Equal(t, "deployment 2 of acme/w is not in effect: version "+w.Version+": secret KEY of acme/w is not set",
		h.fleet.Stats().Secrets.Held[0])
	require.Equal(t, "without", string(h.call("acme/w").Body))
	code, out := runDoctor(t, h.doctorConfig())
	require.Equal(t, exitBad, code)
	require.Contains(t, out, "bad   secrets")
	require.Contains(t, out, "is not in effect: version "+w.Version+": secret KEY of acme/w is not set")

	h.secret("acme/w", "KEY", "value")
	h.answers("acme/w", "value")
	_, out = runDoctor(t, h.doctorConfig())
	require.Contains(t, out, "ok    secrets       stored: 1; every process has the key")

	code, out, errs := h.command("", "secrets", "ls", "acme")
	require.Zero(t, code, errs)
	require.Regexp(t, `^OF +NAME +SET +OPENED BY\nacme/w +KEY +\S+ \S+ +`+recipient+`\n$`, out)
}

func (h *testFleet) doctorConfig() config.Config {
	cfg := h.fleet.Config()
	cfg.NatsURL = h.fleet.URL()
	return cfg
}

// A ciphertext that was copied to another secret's key changes nothing for workers that run, and is reported. A process
// that starts with it does not use it.
func TestACopiedCiphertextIsNotUsed(t *testing.T) {
	t.Parallel()
	key, _ := newKey(t)
	srv := natstest.Start(t)
	at := func(c *config.Config) { c.NatsURL = srv.URL() }
	h := openFleet(t, withKey(key), at)
	h.secret("acme/w", "KEY", "acme's own")
	h.secret("beta/w", "KEY", "beta's own")
	h.deploy("acme", "w", keyWorker, `{"secrets": ["KEY"]}`)
	h.deploy("beta", "w", keyWorker, `{"secrets": ["KEY"]}`)
	kv, err := h.js.KeyValue(t.Context(), deploy.BucketSecrets)
	require.NoError(t, err)
	entry, err := kv.Get(t.Context(), "beta.w.KEY")
	require.NoError(t, err)
	_, err = kv.Put(t.Context(), "acme.w.KEY", entry.Value())
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(h.fleet.Stats().Secrets.Broken) == 1 }, patience, time.Millisecond)
	require.Equal(t, "secret acme/w KEY: its ciphertext was made for beta/w KEY: set it again", h.fleet.Stats().Secrets.Broken[0])
	require.Equal(t, "acme's own", string(h.call("acme/w").Body))
	require.Equal(t, "beta's own", string(h.call("beta/w").Body))
	code, out := runDoctor(t, h.doctorConfig())
	require.Equal(t, exitBad, code)
	require.Contains(t, out, "stored secrets cannot be opened: secret acme/w KEY: its ciphertext was made for beta/w KEY")

	h.stop()
	h = openFleet(t, withKey(key), at)
	require.Contains(t, string(h.call("acme/w").Body), "its ciphertext was made for beta/w KEY")
	require.Equal(t, "beta's own", string(h.call("beta/w").Body))
	h.secret("acme/w", "KEY", "set again")
	h.answers("acme/w", "set again")
}

// A process without the key goes on with the version that it has, says so, and reports it. The deploy names it.
func TestAProcessWithoutTheKey(t *testing.T) {
	t.Parallel()
	key, _ := newKey(t)
	srv := natstest.Start(t)
	at := func(c *config.Config) { c.NatsURL = srv.URL() }
	without := openFleet(t, at)
	h := openFleet(t, withKey(key), at)
	old := h.deploy("acme", "w", `export default { fetch: () => new Response("without") }`)
	code, out, errs := h.command("value", "secrets", "set", "acme/w", "KEY")
	require.Zero(t, code, errs)
	require.Contains(t, errs, "warning: processes that have no PINWHEEL_SECRETS_KEY, or do not tell: ")
	require.NotContains(t, out+errs, "value")
	w := h.deployUnchecked("acme", "w", keyWorker, workers.Spec{Secrets: []string{"KEY"}})
	require.Eventually(t, func() bool { return slices.Contains(h.versions("acme/w", 2), w.Version) }, patience,
		time.Millisecond)
	require.Eventually(t, func() bool { return len(without.fleet.Stats().Secrets.Held) == 1 }, patience, time.Millisecond)
	require.ElementsMatch(t, []string{old.Version, w.Version}, h.versions("acme/w", 2))
	require.Contains(t, without.fleet.Stats().Secrets.Held[0], "secret acme/w KEY: this process has no PINWHEEL_SECRETS_KEY")
	code, out = runDoctor(t, h.doctorConfig())
	require.Equal(t, exitBad, code)
	require.Contains(t, out, "stored: 1; processes have no key: ")
	require.Contains(t, out, "workers lack their secrets: ")

	late := openFleet(t, at)
	require.Equal(t, []string{"events of acme/w fail: version " + w.Version + ": secret acme/w KEY: this process has no PINWHEEL_SECRETS_KEY"},
		late.fleet.Stats().Secrets.Held)

	code, _, errs = h.command("", "secrets", "rotate")
	require.Equal(t, exitFailure, code)
	require.Contains(t, errs, " has no PINWHEEL_SECRETS_KEY")
	require.Contains(t, errs, "start all with the new identity as the first")
}

// Keys are changed in three steps: each process gets the new identity, all secrets are encrypted to it, the old
// identity goes. Workers go on all the time.
func TestRotationOfTheKey(t *testing.T) {
	t.Parallel()
	oldKey, oldRecipient := newKey(t)
	newKeyFile, newRecipient := newKey(t)
	srv := natstest.Start(t)
	at := func(c *config.Config) { c.NatsURL, c.ControlToken = srv.URL(), secretsToken }
	h := openFleet(t, withKey(oldKey), at)
	h.secret("acme/w", "KEY", "value")
	h.secret("acme", "OTHER", "value")
	h.deploy("acme", "w", keyWorker, `{"secrets": ["KEY"]}`)
	h.stop()

	both := filepath.Join(t.TempDir(), "both")
	var text []byte
	for _, file := range []string{newKeyFile, oldKey} {
		one, err := os.ReadFile(file)
		require.NoError(t, err)
		text = append(text, one...)
	}
	require.NoError(t, os.WriteFile(both, text, 0o600))
	h = openFleet(t, withKey(both), at)
	require.Equal(t, "value", string(h.call("acme/w").Body))
	_, out, _ := h.command("", "secrets", "ls", "acme", "--json")
	require.Equal(t, 2, strings.Count(out, oldRecipient), out)
	h.secret("acme", "OTHER", "newer")
	code, out, errs := h.command("", "secrets", "rotate")
	require.Zero(t, code, errs)
	require.Equal(t, "1 secrets encrypted again to "+newRecipient+", 1 were already\n", out)
	_, out, _ = h.command("", "secrets", "ls", "acme", "--json")
	require.Equal(t, 2, strings.Count(out, newRecipient), out)
	require.NotContains(t, out, oldRecipient)
	require.Equal(t, "value", string(h.call("acme/w").Body))
	discards := h.fleet.Stats().Discards["secrets"]
	require.Zero(t, discards, "the value is the same: contexts stay")
	h.stop()

	h = openFleet(t, withKey(newKeyFile), at)
	require.Equal(t, "value", string(h.call("acme/w").Body))
	cfg := h.fleet.Config()
	cfg.ControlToken = ""
	var o, e bytes.Buffer
	require.Equal(t, exitFailure, cli.MainWith(cfg, []string{"secrets", "rotate"}, strings.NewReader(""), &o, &e))
	require.Contains(t, e.String(), "secrets.rotate needs the header Authorization", "it is guarded")
}

// A process with a bad key file does not start.
func TestABadKeyFileStopsTheStart(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(path, []byte("s3cret"), 0o600))
	cfg := testConfig(t)
	cfg.SecretsKey = path
	_, err := fleet.Open(cfg, zerolog.Nop())
	require.ErrorContains(t, err, "secrets key "+path+": line 1 is no age identity")
	require.NotContains(t, err.Error(), "s3cret")
	require.ErrorContains(t, fleet.Supervise(t.Context(), cfg, zerolog.Nop(), &output{}, func(string, string, string) {}),
		"line 1 is no age identity")
}

// Endpoints take only what is encrypted for that name, so that later the owner API can use them.
func TestSecretEndpoints(t *testing.T) {
	t.Parallel()
	key, recipient := newKey(t)
	h := openFleet(t, withKey(key), func(c *config.Config) { c.ControlToken = secretsToken })
	client := control.NewClient(h.nc, events.DefaultPrefix, secretsToken)
	n := secrets.Name{Owner: "acme", Worker: "w", Name: "KEY"}
	sealed, err := secrets.Seal(n, "value", recipient)
	require.NoError(t, err)
	_, err = control.Ask(t.Context(), client, control.SecretsSet, control.SetSecret{Name: n, Sealed: sealed})
	require.NoError(t, err)
	for want, r := range map[string]control.SetSecret{
		"its ciphertext was made for acme/w KEY": {Name: secrets.Name{Owner: "beta", Name: "KEY"}, Sealed: sealed},
		"not encrypted with age":                 {Name: n, Sealed: []byte("clear")},
		"sealed has 0 bytes":                     {Name: n},
		`owner "a b"`:                            {Name: secrets.Name{Owner: "a b", Name: "KEY"}, Sealed: sealed},
	} {
		_, err := control.Ask(t.Context(), client, control.SecretsSet, r)
		require.ErrorContains(t, err, want)
	}
	list, err := control.Ask(t.Context(), client, control.SecretsList,
		control.ListSecrets{OwnerName: control.OwnerName{Owner: "acme"}})
	require.NoError(t, err)
	require.Len(t, list.Secrets, 1)
	require.Equal(t, []string{recipient}, list.Secrets[0].Recipients)
	h.deploy("acme", "w", keyWorker, `{"secrets": ["KEY"]}`)
	_, err = control.Ask(t.Context(), client, control.SecretsRemove, control.SecretName{Name: n})
	require.ErrorContains(t, err, "is named by acme/w")
	_, err = control.Ask(t.Context(), client, control.SecretsRemove, control.SecretName{Name: n, Force: true})
	require.NoError(t, err)
	_, err = control.Ask(t.Context(), client, control.SecretsRemove, control.SecretName{Name: n, Force: true})
	require.ErrorContains(t, err, "no such secret: acme/w KEY")
	_, err = control.Ask(t.Context(), control.NewClient(h.nc, events.DefaultPrefix, ""), control.SecretsSet,
		control.SetSecret{Name: n, Sealed: sealed})
	require.ErrorContains(t, err, "secrets.set needs the header Authorization")
}

// Nothing of ours writes a value: no log, metric, record, dead letter, control answer, output of a command, or stream.
func TestValuesAreWrittenNowhere(t *testing.T) {
	t.Parallel()
	key, _ := newKey(t)
	cfg := testConfig(t)
	cfg.SecretsKey, cfg.ControlToken, cfg.LogLevel = key, secretsToken, "debug"
	log := &output{}
	f, err := fleet.Open(cfg, zerolog.New(log))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	<-f.Ready()
	t.Cleanup(func() { cancel(); require.NoError(t, <-done) })
	h := &testFleet{t: t, fleet: f}
	h.connect(f.URL())
	logs, err := h.nc.SubscribeSync("pinwheel.logs.>")
	require.NoError(t, err)
	require.NoError(t, h.nc.Flush())

	const one, two = "value-Zq7Jx1-one", "value-Zq7Jx1-second"
	var seen strings.Builder // everything that was written
	run := func(stdin string, args ...string) {
		_, out, errs := h.command(stdin, args...)
		fmt.Fprintf(&seen, "%s: %s%s\n", args, out, errs)
	}
	run(one, "secrets", "set", "acme/w", "KEY")
	run(one, "secrets", "set", "acme", "OTHER")
	h.deploy("acme", "w", `export default {
  fetch: (request, env) => new Response(String(env.KEY.length)),
  task(event, env) { if (env.KEY.length < 100) throw new Error("no"); },
}`, `{"secrets": ["KEY"], "retries": {"maxAttempts": 1}}`)
	require.Equal(t, fmt.Sprint(len(one)), string(h.call("acme/w").Body))
	h.reply(h.send(events.Task, "acme/w", "{}"))
	h.settled()
	require.Len(t, h.dead(), 1)
	run(two, "secrets", "set", "acme/w", "KEY")
	run(two, "secrets", "set", "acme/w", "1KEY")
	run(two+strings.Repeat("x", secrets.MaxValue), "secrets", "set", "acme/w", "KEY")
	// The bucket keeps the newest value only: the process might never see one that is replaced at once.
	require.Eventually(t, func() bool { return fmt.Sprint(len(two)) == string(h.call("acme/w").Body) }, patience,
		time.Millisecond)
	kv, err := h.js.KeyValue(t.Context(), deploy.BucketSecrets)
	require.NoError(t, err)
	_, err = kv.PutString(t.Context(), "acme.w.KEY", "garbage")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(h.fleet.Stats().Secrets.Broken) == 1 }, patience, time.Millisecond)
	require.Equal(t, fmt.Sprint(len(two)), string(h.call("acme/w").Body))
	for _, args := range [][]string{
		{"secrets", "ls", "acme"}, {"secrets", "ls", "acme", "--json"}, {"workers", "ls"},
		{"workers", "show", "acme/w", "--json"}, {"workers", "show", "acme/w"},
		{"dead", "ls", "--json"}, {"dead", "show", "1"}, {"doctor", "--json"}, {"owners", "ls"}, {"secrets", "rotate"},
	} {
		run("", args...)
	}
	for _, endpoint := range []string{"pool", "stats", "settings", "workers.list", "workers.versions", "workers.active",
		"owners.list", "secrets.keys", "secrets.list"} {
		request := `{}`
		switch endpoint {
		case "secrets.list":
			request = `{"owner":"acme"}`
		case "workers.versions", "workers.active":
			request = `{"worker":"acme/w"}`
		}
		m, err := h.nc.Request("pinwheel.control."+endpoint, []byte(request), patience)
		require.NoError(t, err)
		fmt.Fprintf(&seen, "%s: %v %s\n", endpoint, m.Header, m.Data)
	}
	families, err := f.Gatherer().Gather()
	require.NoError(t, err)
	for _, family := range families {
		_, err := expfmt.MetricFamilyToText(&seen, family)
		require.NoError(t, err)
	}
	stats, err := json.Marshal(f.Stats())
	require.NoError(t, err)
	fmt.Fprintf(&seen, "%s %+v\n", stats, f.Stats())
	require.NoError(t, h.nc.Flush())
	for n, _, _ := logs.Pending(); n > 0; n-- {
		m, err := logs.NextMsg(patience)
		require.NoError(t, err)
		seen.Write(m.Data)
	}
	h.dumpStreams(&seen)
	seen.WriteString(log.String())
	require.NotContains(t, seen.String(), "Zq7Jx1")
	for _, there := range []string{"acme.w.KEY", "age-encryption.org/v1", "pinwheel_", "a secret was changed",
		"failed: exception: Error: no"} {
		require.Contains(t, seen.String(), there, "the test looks at what it is to look at")
	}
}

// dumpStreams writes all messages in all streams.
func (h *testFleet) dumpStreams(to *strings.Builder) {
	h.t.Helper()
	ctx := context.Background()
	list := h.js.ListStreams(ctx)
	for info := range list.Info() {
		s, err := h.js.Stream(ctx, info.Config.Name)
		require.NoError(h.t, err)
		for seq := max(1, info.State.FirstSeq); seq <= info.State.LastSeq; seq++ {
			m, err := s.GetMsg(ctx, seq)
			if err == nil {
				fmt.Fprintf(to, "%s %v %s\n", m.Subject, m.Header, m.Data)
			} else {
				require.ErrorIs(h.t, err, jetstream.ErrMsgNotFound)
			}
		}
	}
	require.NoError(h.t, list.Err())
}

// An owner cannot have others encrypt to its own key: only the fleet's user hears the question, and may answer it.
func TestAnOwnerCannotOfferAKey(t *testing.T) {
	t.Parallel()
	url := natstest.StartConfigured(t, "../../../deploy/nats/users.conf")
	key, recipient := newKey(t)
	h := openFleet(t, withKey(key), func(c *config.Config) {
		c.NatsURL, c.NatsUser, c.NatsPassword, c.ReplyPrefixes, c.MaxBytes = url, "fleet", "fleet-secret", config.List{
			"_INBOX.{owner}."}, 64<<20
	})
	acme := as(t, url, "acme")
	heard := make(chan *nats.Msg, 10)
	for _, subject := range []string{"pinwheel.control.secrets.keys", "pinwheel.control.>", ">"} {
		_, err := acme.ChanSubscribe(subject, heard)
		require.NoError(t, err)
	}
	require.NoError(t, acme.Flush())
	code, out, errs := h.command("value", "secrets", "set", "beta", "KEY")
	require.Zero(t, code, errs)
	require.Equal(t, "beta KEY is set, encrypted to "+recipient+"\n", out)
	require.Empty(t, heard)
	for _, subject := range []string{"pinwheel.control.secrets.list", "$JS.API.DIRECT.GET.KV_PINWHEEL_SECRETS.$KV.PINWHEEL_SECRETS.beta.=.KEY"} {
		_, err := acme.Request(subject, []byte(`{"owner":"beta"}`), 100*time.Millisecond)
		require.Error(t, err, subject)
	}
}
