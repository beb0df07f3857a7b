package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/operate/runs"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
)

const recordedWorker = `export default {
  async fetch(request, env, ctx) {
    console.log("called " + new URL(request.url).pathname);
    ctx.waitUntil(new Promise(done => setTimeout(() => { console.log("late"); done() }, 5)));
    return new Response("ok", {status: 201});
  },
  task(event) {
    console.warn("task <b>" + event.attempt);
    if (event.attempt < 3) throw new Error("not yet: " + event.attempt);
  },
}`

// recorded returns the records that f chooses, the oldest first, when there are so many.
func (h *testFleet) recorded(f runs.Filter, n int) (list []*runs.Record) {
	h.t.Helper()
	store := runs.NewStore(h.js, "pinwheel")
	require.Eventually(h.t, func() bool {
		p, err := store.Newest(h.t.Context(), f, 0, runs.MaxPage)
		require.NoError(h.t, err)
		list = nil
		for _, r := range p.Records {
			list = append([]*runs.Record{r}, list...)
		}
		return len(list) >= n
	}, patience, 10*time.Millisecond)
	require.Len(h.t, list, n)
	return list
}

// The run history has each attempt with its lines, as the rule of the fleet or of the owner says.
func TestRunHistory(t *testing.T) {
	t.Parallel()
	h := openFleet(t, func(c *config.Config) { c.Runs = "failures" })
	h.fleet.SetPolicy("acme", workers.Policy{Runs: "all"})
	const quick = `{"retries": {"initialMs": 1, "maxMs": 1}}`
	w := h.deploy("acme", "w", recordedWorker, quick)
	h.deploy("beta", "w", recordedWorker, quick)
	h.deploy("else", "w", recordedWorker)
	h.fleet.SetPolicy("else", workers.Policy{Runs: "none"})
	for _, owner := range []string{"else", "beta", "acme"} {
		require.Nil(t, h.reply(h.send(events.Fetch, owner+"/w", "body", "Event-Id", "first")).Failure)
		h.send(events.Task, owner+"/w", "body!", "Event-Id", "second")
	}
	first := h.recorded(runs.Filter{Owner: "acme", Event: "first"}, 1)[0]
	require.Equal(t, []any{"acme", "w", "ok", "fetch", 1, w.Version, 201, int64(4), int64(2)}, []any{first.Owner,
		first.Worker, first.Outcome, first.Kind, first.Attempt, first.Version, first.Status, first.BytesIn, first.BytesOut})
	require.Len(t, first.Lines, 2)
	require.Equal(t, "late", first.Lines[1].Text)
	require.False(t, first.Replied.IsZero(), "waitUntil went on after the reply")
	require.True(t, first.Stored.Before(first.Started) && first.Started.Before(first.Ended))
	for _, owner := range []string{"acme", "beta"} {
		list := h.recorded(runs.Filter{Owner: owner, Event: "second"}, 3)
		for i, r := range list {
			require.Equal(t, i+1, r.Attempt)
			require.Equal(t, []string{"failed", "failed", "ok"}[i], r.Outcome)
			require.Equal(t, fmt.Sprintf("task <b>%d", i+1), r.Lines[0].Text)
		}
		require.Contains(t, list[0].Message, "not yet: 1")
		require.Equal(t, "exception", list[0].Reason)
	}
	require.Len(t, h.recorded(runs.Filter{Owner: "beta"}, 3), 3, "a success is not kept")
	h.recorded(runs.Filter{Owner: "else"}, 0)
}

// An owner that fails all the time has no more of the history than as much as is free. What others have stays.
func TestRunHistoryOfOneOwnerIsBounded(t *testing.T) {
	t.Parallel()
	h := openFleet(t, func(c *config.Config) { c.Runs, c.RunsBytes = "all", 2<<20 })
	h.deploy("quiet", "w", `export default { task() {} }`)
	h.deploy("hog", "w", `export default { task() { throw new Error("x".repeat(3000)) } }`, `{"retries": {"maxAttempts": 1}}`)
	h.send(events.Task, "quiet/w", "", "Event-Id", "one")
	h.recorded(runs.Filter{Owner: "quiet"}, 1)
	removed := func() uint64 {
		s, err := h.js.Stream(t.Context(), events.StreamRuns)
		require.NoError(t, err)
		return s.CachedInfo().State.LastSeq - s.CachedInfo().State.Msgs
	}
	for i := 0; removed() < 600; i++ { // as many as there is room for
		h.reply(h.send(events.Task, "hog/w", ""))
		require.Less(t, i, 10_000, "its oldest records are not removed")
	}
	h.recorded(runs.Filter{Owner: "quiet"}, 1)
	require.NoError(t, h.fleet.CheckReady(t.Context()), "a full history keeps the fleet from nothing")
}

// Operators see all runs by commands and control endpoints, and owners theirs by the owner API.
func TestRunHistoryIsListedAndShown(t *testing.T) {
	t.Parallel()
	h := openFleet(t, func(c *config.Config) { c.Runs, c.Control = "all", config.ControlByPermissions })
	for _, owner := range []string{"acme", "beta"} {
		h.deploy(owner, "w", recordedWorker)
		require.Nil(t, h.reply(h.send(events.Fetch, owner+"/w", "body", "Event-Id", "of-"+owner)).Failure)
		h.recorded(runs.Filter{Owner: owner}, 1)
	}
	code, out, _ := h.command("", "runs", "ls", "acme")
	require.Zero(t, code)
	require.Contains(t, out, "of-acme")
	require.NotContains(t, out, "of-beta")
	code, out, _ = h.command("", "runs", "ls", "--text", "CALLED", "--json")
	require.Zero(t, code)
	require.Contains(t, out, `"text":"late"`)
	require.Contains(t, out, `"event":"of-beta"`)
	mine, foreign := h.recorded(runs.Filter{Owner: "acme"}, 1)[0].Seq, h.recorded(runs.Filter{Owner: "beta"}, 1)[0].Seq
	code, out, _ = h.command("", "runs", "show", fmt.Sprint(mine))
	require.Zero(t, code)
	require.Regexp(t, `event +of-acme\n`, out)
	require.Contains(t, out, "info  called /")
	code, _, errs := h.command("", "runs", "show", "99999")
	require.Equal(t, 1, code)
	require.Contains(t, errs, "there is no such run")
	code, _, errs = h.command("", "runs", "ls", "--outcome", "good")
	require.Equal(t, 2, code)
	require.Contains(t, errs, "ok, failed, broken, retry, interrupted")

	answer, failure := askAsOwner(t, h.nc, "acme", "runs.list", `{"worker":"w","lines":true}`)
	require.Empty(t, failure)
	require.Contains(t, answer, `"event":"of-acme"`)
	require.Contains(t, answer, `"text":"late"`)
	require.NotContains(t, answer, "beta")
	answer, failure = askAsOwner(t, h.nc, "acme", "runs.show", fmt.Sprintf(`{"id":%d}`, mine))
	require.Empty(t, failure)
	require.Contains(t, answer, `"event":"of-acme"`)
	_, failure = askAsOwner(t, h.nc, "acme", "runs.show", fmt.Sprintf(`{"id":%d}`, foreign))
	require.Contains(t, failure, "404 there is no such run")
	for _, request := range []string{`{"owner":"beta"}`, `{"worker":"beta/w"}`} {
		_, failure = askAsOwner(t, h.nc, "acme", "runs.list", request)
		require.Contains(t, failure, "403")
	}
	_, failure = askAsOwner(t, h.nc, "acme", "runs.list", `{"limit":501}`)
	require.Contains(t, failure, "400 limit is 501")
}
