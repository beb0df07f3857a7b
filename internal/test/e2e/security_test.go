package e2e

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/client"
	"github.com/pinwheel-run/pinwheel/internal/operate/cli"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

func as(t *testing.T, url, user string, opts ...nats.Option) *nats.Conn {
	t.Helper()
	opts = append(opts, nats.UserInfo(user, user+"-secret"), nats.CustomInboxPrefix("_INBOX."+user),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	nc, err := natstest.Dial(url, opts...)
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	return nc
}

// openSecured opens a fleet that connects as user fleet.
func openSecured(t *testing.T, url string, replyPrefixes ...string) *testFleet {
	t.Helper()
	return openFleet(t, func(c *config.Config) {
		c.NatsURL, c.NatsUser, c.NatsPassword, c.ReplyPrefixes, c.MaxBytes =
			url, "fleet", "fleet-secret", replyPrefixes, 64<<20
	})
}

// streams returns the content of every stream of the fleet, for comparison.
func (h *testFleet) streams() map[string]uint64 {
	h.t.Helper()
	all := map[string]uint64{}
	list := h.js.ListStreams(context.Background())
	for i := range list.Info() {
		all[i.Config.Name] = i.State.LastSeq
	}
	require.NoError(h.t, list.Err())
	require.Greater(h.t, len(all), 5)
	return all
}

const securedWorker = `export default {
  async fetch(request) { console.log("called"); return new Response("hello " + await request.text()); },
  async task(event) { return "done"; },
}`

// mayAndMayNot tries what an owner may do and what it may not do, as acme, with beta's user beside it.
func mayAndMayNot(t *testing.T, h *testFleet, acme, beta *nats.Conn) {
	h.deployAs("acme", "w", securedWorker)
	h.deployAs("beta", "w", securedWorker)

	// Allowed: calls, events with replies, large replies, and its own logs.
	logs, err := acme.SubscribeSync("pinwheel.logs.acme.*")
	require.NoError(t, err)
	require.NoError(t, acme.Flush())
	m, err := acme.Request("pinwheel.call.fetch.acme.w", []byte("call"), patience)
	require.NoError(t, err)
	require.Equal(t, "hello call", string(m.Data))
	_, err = logs.NextMsg(patience)
	require.NoError(t, err)
	c, err := client.New(acme)
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	r, err := c.Call(t.Context(), client.Request{Kind: events.Fetch, Owner: "acme", Worker: "w", Method: "POST",
		Body: []byte("event")})
	require.NoError(t, err)
	require.Equal(t, "hello event", string(r.Body))
	_, body, err := c.Open(t.Context(), client.Request{Kind: events.Fetch, Owner: "acme", Worker: "w",
		BodyFrom: strings.NewReader(strings.Repeat("x", 2<<20))})
	require.NoError(t, err)
	long, err := io.ReadAll(body)
	require.NoError(t, err)
	require.Len(t, long, len("hello ")+(2<<20), "parts in, chunks out")
	h.settled()

	// Forbidden: none of it has an effect, and none is answered.
	before := h.streams()
	spy, err := beta.SubscribeSync("_INBOX.beta.>")
	require.NoError(t, err)
	require.NoError(t, beta.Flush())
	inbox := acme.NewInbox()
	answers := make(chan *nats.Msg, 100)
	_, err = acme.ChanSubscribe(inbox, answers)
	require.NoError(t, err)
	require.NoError(t, acme.Flush())
	for _, subject := range []string{
		"pinwheel.events.task.beta.w", "pinwheel.call.task.beta.w", "pinwheel.events.3.task.beta.w", "pinwheel.body.beta.x.0",
		"pinwheel.cancel.beta.w", "pinwheel.credit.beta.x.y",
		"pinwheel.pin", "pinwheel.dead.acme.w.task.exception.S.1", "pinwheel.parked.acme.task.w",
		"pinwheel.schedules.at.0.task.acme.w.x.y", "pinwheel.schedules.due.0.task.acme.w.x.y",
		"pinwheel.schedules.cron.acme.w.1", "pinwheel.unschedule.beta.w", "pinwheel.logs.beta.w",
		"pinwheel.control.pool", "$SRV.PING", "$SRV.STATS.pinwheel",
		"$JS.API.INFO", "$JS.API.STREAM.NAMES", "$JS.API.STREAM.PURGE.PINWHEEL_EVENTS",
		"$JS.API.STREAM.DELETE.PINWHEEL_EVENTS", "$JS.API.STREAM.MSG.GET.PINWHEEL_EVENTS",
		"$JS.API.CONSUMER.MSG.NEXT.PINWHEEL_EVENTS.lane-1", "$JS.API.CONSUMER.DELETE.PINWHEEL_EVENTS.lane-1",
		"$JS.API.DIRECT.GET.KV_PINWHEEL_WORKERS.$KV.PINWHEEL_WORKERS.beta.w",
		"$JS.ACK.PINWHEEL_EVENTS.lane-1.1.1.1.1.1", "$KV.PINWHEEL_WORKERS.acme.w", "$KV.PINWHEEL_OWNERS.acme",
		"$O.PINWHEEL_BUNDLES.M.x", "$SYS.REQ.SERVER.PING", "_INBOX.beta.x",
	} {
		require.NoError(t, acme.PublishRequest(subject, inbox, []byte("{}")))
	}
	require.NoError(t, acme.Flush())
	for _, subject := range []string{"_INBOX.beta.>", "_INBOX.>", ">", "pinwheel.>", "pinwheel.logs.>", "pinwheel.call.>",
		"$JS.>", "$SRV.>", "$KV.>"} {
		_, _ = acme.SubscribeSync(subject) // the server reports an error, or delivers nothing
	}
	require.NoError(t, acme.Flush())

	// Only beta gets beta's reply, and acme's event cannot name beta's inbox.
	m, err = beta.Request("pinwheel.call.fetch.beta.w", []byte("mine"), patience)
	require.NoError(t, err)
	require.Equal(t, "hello mine", string(m.Data))
	stolen := nats.NewMsg("pinwheel.events.task.acme.w")
	stolen.Header.Set("Reply-To", "_INBOX.beta.stolen")
	stolen.Reply = inbox
	require.NoError(t, acme.PublishMsg(stolen))
	require.Eventually(t, func() bool { return len(h.dead()) == 1 }, patience, 5*time.Millisecond, "refused as malformed")
	require.Contains(t, h.dead()[0].Failure.Message, `header Reply-To "_INBOX.beta.stolen": it must begin with _INBOX.{owner}.`)
	h.settled()

	// acme receives only the PubAck of its own event, and "no responders" for the rest, in any order. It has no JetStream
	// of its own.
	refused := func(m *nats.Msg) bool {
		return m.Header.Get("Status") == "503" || strings.Contains(string(m.Data), "JetStream not enabled for account")
	}
	m = <-answers
	for refused(m) {
		m = <-answers
	}
	require.Contains(t, string(m.Data), `"stream":"PINWHEEL_EVENTS"`)
	require.NoError(t, acme.Flush())
	for len(answers) > 0 {
		m = <-answers
		require.True(t, refused(m), "another answer: %s", m.Data)
	}
	require.Empty(t, stolenFrom(spy))
	after := h.streams()
	before["PINWHEEL_EVENTS"] += 2 // beta's call and acme's event
	before["PINWHEEL_DEAD"]++
	for name, seq := range after {
		if name != "KV_PINWHEEL_ATTEMPTS" {
			require.Equal(t, before[name], seq, name)
		}
	}
}

// stolenFrom returns the unrequested messages of an inbox.
func stolenFrom(sub *nats.Subscription) (list []string) {
	for {
		n, _, err := sub.Pending()
		if err != nil || n == 0 {
			return list
		}
		m, err := sub.NextMsg(time.Second)
		if err == nil && (strings.HasSuffix(m.Subject, ".stolen") || m.Subject == "_INBOX.beta.x") {
			list = append(list, m.Subject)
		}
	}
}

func (h *testFleet) deployAs(owner, name, code string) {
	h.t.Helper()
	path := filepath.Join(h.t.TempDir(), name+".js")
	require.NoError(h.t, os.WriteFile(path, []byte(code), 0o600))
	cfg := h.fleet.Config()
	var out, errs strings.Builder
	exit := cli.MainWith(cfg, []string{"deploy", path, "--owner", owner}, strings.NewReader(""), &out, &errs)
	require.Zero(h.t, exit, errs.String())
	require.NotContains(h.t, errs.String(), "not taken it up")
}

func TestUsersConfiguration(t *testing.T) {
	t.Parallel()
	url := natstest.StartConfigured(t, "../../../deploy/nats/users.conf")
	h := openSecured(t, url, "_INBOX.{owner}.")
	mayAndMayNot(t, h, as(t, url, "acme"), as(t, url, "beta"))
	_, err := natstest.Dial(url)
	require.ErrorIs(t, err, nats.ErrAuthorization)
	secured(t, h.fleet.Config())
}

func TestAccountsConfiguration(t *testing.T) {
	t.Parallel()
	url := natstest.StartConfigured(t, "../../../deploy/nats/accounts.conf")
	h := openSecured(t, url, "_INBOX.{owner}.", "_R_.")
	acme := as(t, url, "acme")
	mayAndMayNot(t, h, acme, as(t, url, "beta"))
	secured(t, h.fleet.Config())

	// A reply subject belongs to the owner's account: JetStream's answers to its events reach no subject of the fleet.
	before, n := h.streams(), uint64(0)
	for _, to := range []string{
		"pinwheel.events.task.beta.w", "pinwheel.call.task.beta.w", "pinwheel.parked.beta.task.w", "pinwheel.schedules.x",
		"pinwheel.dead.beta.w.task.exception.S.1",
		"$KV.PINWHEEL_WORKERS.beta.w", "$O.PINWHEEL_BUNDLES.M.x", "pinwheel.part.beta.x.0",
	} {
		require.NoError(t, acme.PublishRequest("pinwheel.events.task.acme.w", to, []byte("{}")))
		n++
	}
	require.NoError(t, acme.Flush())
	before["PINWHEEL_EVENTS"] += n
	require.Eventually(t, func() bool { return h.streams()["PINWHEEL_EVENTS"] == before["PINWHEEL_EVENTS"] }, patience,
		5*time.Millisecond)
	h.settled()
	require.Equal(t, before, h.streams())
}

// secured runs the doctor: everything is ok, except for the letter that the test left.
func secured(t *testing.T, cfg config.Config) {
	t.Helper()
	code, out := runDoctor(t, cfg)
	require.Equal(t, exitWarn, code, out)
	require.Contains(t, out, "1 dead letters")
	require.Equal(t, 1, strings.Count(out, "warn"), out)
	require.Contains(t, out, "a client without credentials is refused")
	require.Contains(t, out, "user fleet of account")
}
