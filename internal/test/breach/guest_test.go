//go:build breach && linux

package breach_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/test/breach"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// patience is how long a test waits for a fact before it fails.
const patience = 2 * time.Minute

func TestMain(m *testing.M) {
	fleettest.BeChild()
	os.Exit(m.Run())
}

// scene is a fleet with two owners: beta, who has a secret, and acme, whose worker is a guest that has broken V8.
type scene struct {
	t     *testing.T
	nc    *nats.Conn
	nats  string // its URL
	p     *fleettest.Process
	wait  time.Duration // for what the guest has forged
	url   string        // of acme's worker
	aims  breach.Aims
	loot  breach.Loot
	table []breach.Attempt
}

// digits are 32 random hexadecimal ones.
func digits() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// quiet are bounds of what a guest takes that a process has, and the machine.
var quiet = breach.Aims{Descriptors: 5000, Mebibytes: 512, Threads: 500}

// openScene starts a fleet whose process has env, and both workers. The guest takes as much as most says.
func openScene(t *testing.T, most breach.Aims, env ...string) *scene {
	t.Helper()
	srv := natstest.Start(t)
	s := &scene{t: t, nc: natstest.Connect(t, srv), nats: srv.URL(), wait: patience}
	s.plant(most)
	s.p = fleettest.Serve(t, s.nats, append(env, "PINWHEEL_SECRETS_KEY="+s.aims.KeyFile,
		"PINWHEEL_HTTP_ADDR=127.0.0.1:0", "PINWHEEL_HTTP_PATHS=acme")...)
	s.url = "http://" + s.p.HTTP + "/guest/"
	s.pinwheel(s.loot.Secret, "secrets", "set", "beta", "KEY")
	s.deployVictim("beta")
	s.deploy("acme", "guest", breach.Worker(s.table), `{"limits": {"cpuMs": 120000, "wallMs": "10m"}}`)
	s.askVictim()
	return s
}

// askVictim has the worker of beta keep its text, and read its secret. It answers.
func (s *scene) askVictim() {
	s.t.Helper()
	require.NoError(s.t, s.victim("beta"))
}

// victim asks the worker of an owner who is attacked.
func (s *scene) victim(owner string) error {
	m, err := s.nc.Request("pinwheel.call.fetch."+owner+".victim", []byte(s.loot.Text), patience)
	if err == nil && !strings.HasPrefix(string(m.Data), strconv.Itoa(len(s.loot.Secret))+" ") {
		err = fmt.Errorf("the worker of %s answers %v %q", owner, m.Header, m.Data)
	}
	return err
}

// plant makes what the guest shall not get, and says where it is.
func (s *scene) plant(most breach.Aims) {
	s.t.Helper()
	to, err := url.Parse(s.nats)
	require.NoError(s.t, err)
	port, err := strconv.Atoi(to.Port())
	require.NoError(s.t, err)
	dir, keys := s.t.TempDir(), s.t.TempDir()
	forged, subject := "forged-"+digits(), "breach.forged"
	s.aims = breach.Aims{
		File: filepath.Join(dir, "credentials"), KeyFile: filepath.Join(keys, "key"), Dir: dir,
		SecretPrefix: "secret-of-beta-", TextPrefix: "text-of-beta-",
		NatsIP: to.Hostname(), NatsPort: port,
		Forged:      fmt.Sprintf("PUB %s %d\r\n%s\r\n", subject, len(forged), forged),
		Descriptors: most.Descriptors, Mebibytes: most.Mebibytes, Threads: most.Threads,
	}
	spy, err := s.nc.SubscribeSync(subject)
	require.NoError(s.t, err)
	s.loot = breach.Loot{File: "password-" + digits(), Secret: s.aims.SecretPrefix + digits(),
		Text: s.aims.TextPrefix + digits(), Arrived: func() bool {
			m, err := spy.NextMsg(s.wait)
			return err == nil && string(m.Data) == forged
		}}
	require.NoError(s.t, os.WriteFile(s.aims.File, []byte(s.loot.File), 0o600))
	out := s.pinwheel("", "secrets", "keygen", s.aims.KeyFile)
	s.aims.Recipient = regexp.MustCompile(`age1[a-z0-9]+`).FindString(out)
	require.NotEmpty(s.t, s.aims.Recipient, out)
	s.table = breach.Attempts(s.aims, s.loot)
}

// deployVictim deploys a worker that keeps what it is sent, and has a secret.
func (s *scene) deployVictim(owner string) {
	s.t.Helper()
	s.deploy(owner, "victim", `const kept = [];
export default { async fetch(request, env) {
  const text = await request.text();
  kept.push(text.slice(0, 10) + text.slice(10));
  if (kept.length > 10) kept.shift();
  return new Response(env.KEY.length + " " + kept.length);
} }`, `{"secrets": ["KEY"]}`)
}

// pinwheel runs a command in a process of its own: the fleet's process does not know what it is given.
func (s *scene) pinwheel(stdin string, args ...string) string {
	s.t.Helper()
	cmd := fleettest.Command([]string{"PINWHEEL_NATS_URL=" + s.nats}, args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	require.NoError(s.t, err, "%s", out)
	return string(out)
}

func (s *scene) deploy(owner, name, code, manifest string) {
	s.t.Helper()
	file := filepath.Join(s.t.TempDir(), name+".js")
	require.NoError(s.t, os.WriteFile(file, []byte(code), 0o600))
	require.NoError(s.t, os.WriteFile(strings.TrimSuffix(file, ".js")+".pinwheel.json", []byte(manifest), 0o600))
	require.NotContains(s.t, s.pinwheel("", "deploy", file, "--owner", owner), "not taken it up")
}

// try makes all attempts, and returns the names of those that did not work.
func (s *scene) try() (refused []string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 5*patience)
	defer cancel()
	for _, r := range breach.Try(ctx, s.url, s.aims, s.table) {
		s.t.Logf("%-40s reached %-5t result %d, %d texts, %q %v", r.Attempt.Name, r.Reached, r.Answer.Result,
			len(r.Answer.Texts), r.Answer.Error, r.Err)
		if !r.Reached {
			refused = append(refused, r.Attempt.Name)
		}
	}
	return refused
}

// mayFail are attempts that the system may refuse to any process.
var mayFail = []string{"trace the parent", "open the parent's memory", "make a namespace", "make io_uring"}

// In a process that is not confined, a guest that has broken V8 reaches all of it.
func TestGuestsOfTheSharedPool(t *testing.T) {
	t.Parallel()
	s := openScene(t, quiet)
	require.Subset(t, mayFail, s.try())
}

// The confinement of processes keeps the guest from files, programs and other processes. It does not keep it from what
// the process has itself: the data of other owners, the key, and NATS.
func TestGuestsOfAConfinedProcess(t *testing.T) {
	t.Parallel()
	s := openScene(t, quiet, "PINWHEEL_PROCESSES=1", "PINWHEEL_CONFINE=require")
	require.Equal(t, []string{"read a file of credentials", "write a file", "read the parent's environment",
		"open the parent's memory", "trace the parent", "signal the parent", "execute a program", "become a program",
		"execute memory", "make a namespace", "make io_uring"}, s.try())
}
