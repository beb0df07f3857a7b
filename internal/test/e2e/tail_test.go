package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/operate/tail"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
)

// tailID is the id of a feed.
const tailID = "0123456789abcdef0123"

// tail asks n processes for a tail of an owner, and returns the answers.
func (h *testFleet) tail(n int, request string) (answers []*nats.Msg) {
	h.t.Helper()
	inbox := h.nc.NewInbox()
	sub, err := h.nc.SubscribeSync(inbox)
	require.NoError(h.t, err)
	require.NoError(h.t, h.nc.Flush())
	defer func() { _ = sub.Unsubscribe() }()
	require.NoError(h.t, h.nc.PublishRequest("pinwheel.control.tail", inbox, []byte(request)))
	for range n {
		m, err := sub.NextMsg(patience)
		require.NoError(h.t, err)
		answers = append(answers, m)
	}
	return answers
}

// entries reads a feed until it has entries for which enough is true.
func entries(t *testing.T, feed *nats.Subscription, enough func([]tail.Entry) bool) (list []tail.Entry) {
	t.Helper()
	for deadline := time.Now().Add(patience); !enough(list); {
		m, err := feed.NextMsg(time.Until(deadline))
		require.NoError(t, err, "%+v", list)
		var e tail.Entry
		require.NoError(t, json.Unmarshal(m.Data, &e))
		list = append(list, e)
	}
	return list
}

const tailedWorker = `export default {
  async fetch(request, env, ctx) {
    console.log("called " + new URL(request.url).pathname);
    if (request.url.endsWith("/throws")) throw new Error("so it is");
    if (request.url.endsWith("/breaks")) return new Response(new ReadableStream({ async start() { await null; throw new Error("no more") } }));
    if (request.url.endsWith("/later")) ctx.waitUntil(new Promise(done => setTimeout(done, 5)));
    return new Response("ok", {status: 201});
  },
  task(event) { console.warn("task " + event.id); if (event.attempt === 1) event.retry({delaySeconds: 0}); },
}`

func TestTail(t *testing.T) {
	t.Parallel()
	h := openFleet(t)
	openFleet(t, func(c *config.Config) { c.NatsURL = h.fleet.URL() })
	w := h.deploy("acme", "w", tailedWorker)
	h.deploy("beta", "w", tailedWorker)
	feed, err := h.nc.SubscribeSync("pinwheel.feed.*.*")
	require.NoError(t, err)
	require.NoError(t, h.nc.Flush())
	for _, m := range h.tail(2, fmt.Sprintf(`{"owner":"acme","id":%q}`, tailID)) {
		require.Empty(t, m.Header)
		require.Contains(t, string(m.Data), `"feed":"pinwheel.feed.acme.`+tailID+`"`)
		require.Contains(t, string(m.Data), `"renewMs":5000`)
	}
	h.reply(h.send(events.Fetch, "beta/w", "", "Event-Id", "other"))
	require.Equal(t, 201, h.reply(h.send(events.Fetch, "acme/w", "", "Event-Id", "good")).Status)
	require.Equal(t, 500, h.reply(h.send(events.Fetch, "acme/w", "", "Event-Id", "bad", "Http-Url", "/throws")).Status)
	require.Equal(t, 201, h.reply(h.send(events.Fetch, "acme/w", "", "Event-Id", "waits", "Http-Url", "/later")).Status)
	require.Equal(t, 200, h.reply(h.send(events.Fetch, "acme/w", "", "Event-Id", "breaks", "Http-Url", "/breaks",
		"Body-Credit", "1000")).Status)
	h.send(events.Task, "acme/w", "", "Event-Id", "again")
	h.send(events.Task, "acme/gone", "", "Event-Id", "nowhere")

	type key struct {
		id, what string
		attempt  int
	}
	got := map[key]tail.Entry{}
	entries(t, feed, func(list []tail.Entry) bool {
		if len(list) > 0 {
			e := list[len(list)-1]
			require.Equal(t, "acme", e.Owner)
			got[key{e.EventID, e.Type + e.Level, e.Attempt}] = e
		}
		return len(got) == 15
	})
	for _, c := range []struct {
		id, outcome, reason string
		attempt, status     int
	}{
		{"good", tail.OutcomeOK, "", 1, 201}, {"bad", tail.OutcomeFailed, "exception", 1, 500},
		{"waits", tail.OutcomeOK, "", 1, 201},
		{"breaks", tail.OutcomeBroken, "exception", 1, 200},
		{"again", tail.OutcomeRetry, "", 1, 0}, {"again", tail.OutcomeOK, "", 2, 0},
	} {
		e, ok := got[key{c.id, tail.TypeEvent, c.attempt}]
		require.True(t, ok, "%s %+v", c.id, got)
		require.Equal(t, []any{c.outcome, c.reason, c.status, w.Version, "w"}, []any{e.Outcome, e.Reason, e.Status, e.Version,
			e.Worker}, c.id)
		require.Positive(t, e.DurationMs)
		require.NotEmpty(t, e.Node)
	}
	require.GreaterOrEqual(t, got[key{"waits", tail.TypeEvent, 1}].DurationMs, 5.0, "with waitUntil")
	require.Equal(t, "called /throws", got[key{"bad", "loginfo", 1}].Text)
	require.Contains(t, got[key{"bad", "logerror", 1}].Text, "so it is")
	require.Equal(t, "task again", got[key{"again", "logwarn", 2}].Text)
	require.Contains(t, got[key{"nowhere", "logerror", 1}].Text, "not run: ")

	// After the end nothing comes any more.
	h.tail(2, fmt.Sprintf(`{"owner":"acme","id":%q,"end":true}`, tailID))
	h.reply(h.send(events.Fetch, "acme/w", ""))
	require.NoError(t, h.nc.Flush())
	for n, _, _ := feed.Pending(); n > 0; n-- {
		m, err := feed.NextMsg(patience)
		require.NoError(t, err)
		require.NotContains(t, string(m.Data), `"called /"`)
	}
}

func TestTailsThatAreWrong(t *testing.T) {
	t.Parallel()
	h := openFleet(t)
	feed, err := h.nc.SubscribeSync(">")
	require.NoError(t, err)
	require.NoError(t, h.nc.Flush())
	for _, c := range [][2]string{
		{`{"id":"` + tailID + `"}`, `400 owner ""`},
		{`{"id":"` + tailID + `","owner":"a.b"}`, `400 owner "a.b"`},
		{`{"id":"` + tailID + `","owner":"*"}`, `400 owner "*"`},
		{`{"id":"` + tailID + `","owner":"a","worker":"b/c"}`, `400 worker "b/c" is of owner b, and not of a`},
		{`{"id":"a.b.c.d.e.f.g.h.i","owner":"a"}`, `400 id "a.b.c.d.e.f.g.h.i"`},
		{`{"id":"\u0000abcdefghijklmnopq","owner":"a"}`, `400 id "\x00abc`},
		{`{"id":">","owner":"a"}`, "400 id"},
		{`{"owner":"a"}`, "400 id"},
		{`{"id":"` + tailID + `","owner":"a","grep":"("}`, "400 grep"},
		{`{"id":"` + tailID + `","owner":"a","status":["x"]}`, "400 status"},
		{`{"id":"` + tailID + `","owner":"a","lvl":"x"}`, `400 unknown field "lvl": a request may have owner, id, worker, only, level, version, eventId, status, grep, sample, end`},
	} {
		m := h.tail(1, c[0])[0]
		require.Contains(t, m.Header.Get(micro.ErrorCodeHeader)+" "+m.Header.Get(micro.ErrorHeader), c[1])
	}
	for n, _, _ := feed.Pending(); n > 0; n-- {
		m, err := feed.NextMsg(patience)
		require.NoError(t, err)
		require.False(t, strings.HasPrefix(m.Subject, "pinwheel.feed."), m.Subject)
	}
}
