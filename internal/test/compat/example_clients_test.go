package compat_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

const patience = time.Minute

// Each example client calls a worker under each configuration that we ship, and a backup of all streams can be restored
// there.
func TestClientsUnderTheShippedConfigurations(t *testing.T) {
	t.Parallel()
	clients := exampleClients(t)
	for _, c := range []struct {
		file    string
		replies config.List
		acme    *url.Userinfo // credentials of acme
	}{
		{"users.conf", config.List{"_INBOX.{owner}."}, url.UserPassword("acme", "acme-secret")},
		{"accounts.conf", config.List{"_INBOX.{owner}.", "_R_."}, url.UserPassword("acme", "acme-secret")},
		{"callout.conf", config.List{"_INBOX.{owner}."}, url.User("token-of-acme")},
	} {
		t.Run(c.file, func(t *testing.T) {
			t.Parallel()
			address := shipped(t, c.file)
			f := fleettest.Start(t, func(cfg *config.Config) {
				cfg.NatsURL, cfg.NatsUser, cfg.NatsPassword, cfg.ReplyPrefixes = "nats://"+
					address, "fleet", "fleet-secret", c.replies
			})
			f.Deploy(t, examples+"/hello.js", "--owner", "acme")
			for name, client := range clients {
				out, err := client((&url.URL{Scheme: "nats", User: c.acme, Host: address}).String(), "acme/hello", "Ada")
				require.NoError(t, err, "%s: %s", name, out)
				require.Contains(t, out, `{"hello":"Ada"}`, name)
				require.Contains(t, out, "status 200 after ", name)
				out, err = client((&url.URL{Scheme: "nats", User: c.acme, Host: address}).String(), "acme/nobody", "Ada")
				require.Error(t, err, name)
				require.Contains(t, out, "no-worker: ", name)
			}
			backUpAndRestore(t, address)
			if c.file == "callout.conf" {
				f.Deploy(t, examples+"/hello.js", "--owner", "beta")
				ownersGetWhatIsTheirs(t, "nats://"+address)
			}
		})
	}
}

// ownersGetWhatIsTheirs fails unless the token of acme opens what is acme's, and nothing else.
func ownersGetWhatIsTheirs(t *testing.T, url string) {
	t.Helper()
	denied := make(chan error, 10)
	acme, err := natstest.Dial(url, nats.Token("token-of-acme"), nats.CustomInboxPrefix("_INBOX.acme"),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { denied <- err }))
	require.NoError(t, err)
	defer acme.Close()
	m, err := acme.Request("pinwheel.call.fetch.acme.hello", []byte(`{"name":"Ada"}`), patience)
	require.NoError(t, err)
	require.Contains(t, string(m.Data), `{"hello":"Ada"}`)

	for _, subject := range []string{
		"pinwheel.call.fetch.beta.hello", "pinwheel.events.fetch.beta.hello", "$JS.API.INFO", "$SRV.PING",
		"pinwheel.control.pool", "$SYS.REQ.USER.AUTH", "$KV.PINWHEEL_WORKERS.acme.hello",
	} {
		require.NoError(t, acme.PublishRequest(subject, acme.NewInbox(), nil))
		require.ErrorContains(t, <-denied, `Permissions Violation for Publish to "`+subject+`"`)
	}
	for _, subject := range []string{"_INBOX.>", "_INBOX.beta.>", "pinwheel.>", "pinwheel.logs.beta.*",
		"$SYS.REQ.USER.AUTH", ">"} {
		_, err := acme.SubscribeSync(subject)
		require.NoError(t, err)
		require.NoError(t, acme.Flush())
		require.ErrorContains(t, <-denied, `Permissions Violation for Subscription to "`+subject+`"`)
	}
	for _, o := range [][]nats.Option{nil, {nats.Token("token-of-nobody")}, {nats.UserInfo("fleet", "guessed")},
		{nats.UserInfo("callout", "guessed")}} {
		_, err := natstest.Dial(url, o...)
		require.ErrorIs(t, err, nats.ErrAuthorization)
	}
}

// shipped runs a server with one of the configurations of deploy/nats. It also runs the callout service if the
// configuration uses one. It returns host and port.
func shipped(t *testing.T, file string) string {
	t.Helper()
	seed, err := issuer()
	require.NoError(t, err)
	address := natstest.StartConfigured(t, filepath.Join("../../../deploy/nats", file))
	u, err := url.Parse(address)
	require.NoError(t, err)
	if file == "callout.conf" {
		startCallout(t, address, seed)
	}
	return u.Host
}

// issuer makes the account that signs for the callout service, once, and returns its seed. The configuration reads its
// public key from the environment.
var issuer = sync.OnceValues(func() (seed string, err error) {
	account, err := nkeys.CreateAccount()
	if err != nil {
		return "", err
	}
	public, err := account.PublicKey()
	if err != nil {
		return "", err
	}
	text, err := account.Seed()
	return string(text), errors.Join(err, os.Setenv("CALLOUT_ISSUER", public))
})

// startCallout runs examples/authcallout, with tokens for acme and beta, and waits until it answers.
func startCallout(t *testing.T, address, seed string) {
	t.Helper()
	owners := map[string]string{}
	for _, owner := range []string{"acme", "beta"} {
		hash := sha256.Sum256([]byte("token-of-" + owner))
		owners[hex.EncodeToString(hash[:])] = owner
	}
	text, err := json.Marshal(owners)
	require.NoError(t, err)
	tokens := filepath.Join(t.TempDir(), "tokens.json")
	require.NoError(t, os.WriteFile(tokens, text, 0o600))
	cmd := exec.Command(filepath.Join(programs(t), "authcallout"), address, tokens)
	cmd.Env, cmd.Stderr = append(os.Environ(), "CALLOUT_SEED="+seed), os.Stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	require.Eventually(t, func() bool {
		nc, err := natstest.Dial(address, nats.Token("token-of-acme"))
		if err == nil {
			nc.Close()
		}
		return err == nil
	}, patience, 50*time.Millisecond)
}

var built string

// programs returns the directory of the Go programs, which are built once. go run keeps linked programs in Go's cache,
// and go build links each time. -exec cp copies a program instead of running it.
func programs(t *testing.T) string {
	t.Helper()
	if built == "" {
		dir, err := os.MkdirTemp("", "pinwheel-examples-")
		require.NoError(t, err)
		for _, program := range []string{"authcallout", "clients/go"} {
			run(t, examples, "go", "run", "-exec", "cp", "./"+program, filepath.Join(dir, path.Base(program)))
		}
		built = dir
	}
	return built
}

func run(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s %s: %s", name, strings.Join(args, " "), out)
}

// exampleClients returns the programs of examples/clients that can run here. It reports the others.
func exampleClients(t *testing.T) map[string]func(address, target, name string) (string, error) {
	t.Helper()
	client := func(name string, args ...string) func(address, target, who string) (string, error) {
		return func(address, target, who string) (string, error) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			cmd := exec.CommandContext(ctx, name, append(args, target, who)...)
			cmd.Env = append(os.Environ(), "NATS_URL="+address)
			out, err := cmd.CombinedOutput()
			return string(out), err
		}
	}
	all := map[string]func(address, target, who string) (string, error){"go": client(filepath.Join(programs(t), "go"))}
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(built)) })
	node := t.TempDir()
	require.NoError(t, os.CopyFS(node, os.DirFS(examples+"/clients/node")))
	if runnable(t, "node", "COMPAT_NPM", func() error {
		return command(node, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline")
	}) {
		all["node"] = client("node", filepath.Join(node, "call.js"))
	}
	python := filepath.Join(examples, "clients", "python", "call.py")
	if runnable(t, "python", "CLIENTS_PYTHON", func() error {
		return errors.Join(command(".", "python3", "-c", "import ast; ast.parse(open('"+python+"').read())"),
			command(".", "python3", "-c", "import nats"))
	}) {
		all["python"] = client("python3", python)
	}
	return all
}

func command(dir, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// runnable prepares a client, and reports whether it can run. If it cannot run, the test fails if variable is
// "required", and logs the reason otherwise.
func runnable(t *testing.T, name, variable string, prepare func() error) bool {
	t.Helper()
	err := prepare()
	if err == nil {
		return true
	}
	require.NotEqual(t, "required", os.Getenv(variable), "the client of %s cannot be run: %v", name, err)
	fmt.Fprintf(os.Stderr, "NOT TESTED: the client of %s cannot be run here: %v\n", name, err)
	return false
}

// backUpAndRestore backs up a stream with the backup user, removes it, and restores it, as the nats command does. The
// fleet's user cannot restore it.
func backUpAndRestore(t *testing.T, address string) {
	t.Helper()
	as := func(user string) *nats.Conn {
		nc, err := natstest.Dial("nats://"+address, nats.UserInfo(user, user+"-secret"),
			nats.CustomInboxPrefix("_INBOX."+user),
			nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
		require.NoError(t, err)
		t.Cleanup(nc.Close)
		return nc
	}
	backup, fleet := as("backup"), as("fleet")
	js, err := jetstream.New(fleet)
	require.NoError(t, err)
	const stream = "KV_PINWHEEL_WORKERS"
	before, err := js.Stream(t.Context(), stream)
	require.NoError(t, err)

	inbox := backup.NewInbox()
	chunks, err := backup.SubscribeSync(inbox)
	require.NoError(t, err)
	require.NoError(t, backup.Flush())
	answer := ask(t, backup, "$JS.API.STREAM.SNAPSHOT."+stream, map[string]any{"deliver_subject": inbox,
		"chunk_size": 1024})
	var parts [][]byte
	for {
		m, err := chunks.NextMsg(patience)
		require.NoError(t, err)
		if len(m.Data) == 0 {
			break
		}
		parts = append(parts, m.Data)
		if m.Reply != "" {
			require.NoError(t, m.Respond(nil)) // the server continues after the answer
		}
	}
	require.Greater(t, len(parts), 1)
	_, err = backup.Request("$JS.API.STREAM.DELETE."+stream, nil, 100*time.Millisecond)
	require.Error(t, err, "it removes nothing")
	require.NoError(t, js.DeleteStream(t.Context(), stream))

	// The fleet's user may not send the parts. The server does not report that no one receives them.
	_, err = fleet.Request("$JS.SNAPSHOT.RESTORE."+stream+".x", nil, 100*time.Millisecond)
	require.ErrorIs(t, err, nats.ErrTimeout)
	var to string
	answer = ask(t, backup, "$JS.API.STREAM.RESTORE."+stream, map[string]json.RawMessage{"config": answer["config"],
		"state": answer["state"]})
	require.NoError(t, json.Unmarshal(answer["deliver_subject"], &to))
	var last *nats.Msg
	for _, part := range append(parts, nil) {
		last, err = backup.Request(to, part, patience)
		require.NoError(t, err)
	}
	require.NotContains(t, string(last.Data), `"error"`)
	after, err := js.Stream(t.Context(), stream)
	require.NoError(t, err)
	require.Equal(t, before.CachedInfo().State.Msgs, after.CachedInfo().State.Msgs)
	require.Equal(t, before.CachedInfo().State.LastSeq, after.CachedInfo().State.LastSeq)
}

// ask sends a request to JetStream's API.
func ask(t *testing.T, nc *nats.Conn, subject string, request any) map[string]json.RawMessage {
	t.Helper()
	body, err := json.Marshal(request)
	require.NoError(t, err)
	m, err := nc.Request(subject, body, patience)
	require.NoError(t, err)
	var answer map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(m.Data, &answer))
	require.NotContains(t, answer, "error", string(m.Data))
	return answer
}
