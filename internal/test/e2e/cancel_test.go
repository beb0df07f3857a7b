package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/operate/cancels"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/operate/runs"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// cancel cancels events of an owner by their names, and returns what became of them by their IDs.
func (h *testFleet) cancel(owner string, names ...string) map[string]cancels.Outcome {
	h.t.Helper()
	of := map[string]cancels.Outcome{}
	require.Eventually(h.t, func() bool { // a process that a busy machine does not let answer in time is silent
		a, err := control.Ask(h.t.Context(), h.client(), control.EventsCancel,
			control.CancelEvents{ListEvents: control.ListEvents{Owner: owner}, Names: names})
		if err != nil { // either it has ended since it was asked before, or nobody answered in time
			h.t.Log(err)
			return len(of) > 0
		}
		for _, e := range a.Events {
			of[e.ID] = e.Outcome
		}
		return len(a.Silent) == 0
	}, patience, tick)
	return of
}

// cancelledReply is the reply of a cancelled event.
func (h *testFleet) cancelledReply(c <-chan *nats.Msg) {
	h.t.Helper()
	r := h.reply(c)
	require.NotNil(h.t, r.Failure)
	require.Equal(h.t, events.ReasonCancelled, r.Failure.Reason)
}

// runs reports whether a process runs an event, as far as processes answer: a busy machine may not let them in time.
func (h *testFleet) runs(owner, id string) bool {
	all, _, _ := control.AskHeldEvents(h.t.Context(), h.client(), control.AskHeld{Owner: owner})
	for _, p := range all {
		for _, e := range p.Events {
			if e.ID == id && !e.Began.IsZero() {
				return true
			}
		}
	}
	return false
}

// places returns where the events of an owner are, by their IDs.
func (h *testFleet) places(owner string) map[string]string {
	h.t.Helper()
	page, err := control.Ask(h.t.Context(), h.client(), control.EventsList, control.ListEvents{Owner: owner})
	require.NoError(h.t, err)
	of := map[string]string{}
	for _, q := range page.Events {
		if of[q.ID] != "" {
			q.Place = "two places: it moves"
		}
		of[q.ID] = q.Place
	}
	return of
}

// A waiting event is cancelled wherever it waits: its requester is told, the history says so, and it never runs.
func TestWaitingEventsAreCancelled(t *testing.T) {
	t.Parallel()
	h := openFleet(t, withToken, func(c *config.Config) { c.Runs = "failures" })
	b := countBegun(t, h.nc)
	h.deploy("acme", "w", beginsWorker)
	h.deploy("acme", "other", beginsWorker)
	h.deploy("acme", "fails", `export default { task() { throw new Error("no") } }`,
		`{"retries":{"initialMs":3600000,"maxMs":3600000,"maxAttempts":3}}`)
	h.deploy("acme", "soon", `export default { task() { throw new Error("no") } }`,
		`{"retries":{"initialMs":4000,"maxMs":4000,"jitter":0,"maxAttempts":3}}`)
	h.deploy("bob", "w", beginsWorker)
	h.pause("acme", "w")
	h.pause("bob", "")
	replies := map[string]<-chan *nats.Msg{}
	want := map[string]string{"held": "held", "call": "held", "delayed": "delayed", "retry": "delayed"}
	replies["held"] = h.send(events.Task, "acme/w", `1`, events.HeaderEventID, "held")
	replies["call"] = h.send(events.Fetch, "acme/w", ``, events.HeaderEventID, "call")
	replies["delayed"] = h.send(events.Task, "acme/other", `1`, events.HeaderEventID, "delayed",
		events.HeaderDeliverAfter, "1h")
	replies["retry"] = h.send(events.Task, "acme/fails", `1`, events.HeaderEventID, "retry")
	foreign := h.send(events.Task, "bob/w", `1`, events.HeaderEventID, "parked")
	require.Eventually(t, func() bool {
		return fmt.Sprint(h.places("acme")) == fmt.Sprint(want) && h.places("bob")["parked"] == "parked"
	}, patience, 10*time.Millisecond)

	_, err := control.Ask(t.Context(), h.client(), control.EventsCancel,
		control.CancelEvents{ListEvents: control.ListEvents{Owner: "acme"}, Names: []string{"parked"}})
	var refused *control.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, http.StatusNotFound, refused.Code, "it is another owner's")

	for _, id := range []string{"held", "call", "delayed", "retry"} {
		require.Equal(t, map[string]cancels.Outcome{id: cancels.Cancelled}, h.cancel("acme", id, id))
		h.cancelledReply(replies[id])
		last := h.recorded(runs.Filter{Owner: "acme", Event: id, Outcome: "cancelled"}, 1)[0]
		require.Equal(t, []any{"cancelled", "cancelled"}, []any{last.Outcome, last.Reason})
	}
	require.Empty(t, h.places("acme"))

	replies["soon"] = h.send(events.Task, "acme/soon", `1`, events.HeaderEventID, "soon")
	require.Eventually(t, func() bool {
		all, _, err := control.AskHeldEvents(t.Context(), h.client(), control.AskHeld{Owner: "acme"})
		return err == nil && len(all) == 1 && all[0].All == 1 && all[0].Events[0].State == "waiting"
	}, patience, time.Millisecond)
	require.Equal(t, map[string]cancels.Outcome{"soon": cancels.Cancelled}, h.cancel("acme", "soon"))
	h.cancelledReply(replies["soon"])
	h.recorded(runs.Filter{Owner: "acme", Event: "soon", Outcome: "cancelled"}, 1)

	h.resume("acme", "w")
	h.resume("bob", "")
	require.Nil(t, h.reply(foreign).Failure)
	h.send(events.Task, "acme/w", `1`, events.HeaderEventID, "after")
	require.Eventually(t, func() bool { n, _ := b.of("acme/w"); return n == 1 }, patience, 10*time.Millisecond)
	h.settled()
	n, _ := b.of("acme/w")
	require.Equal(t, 1, n, "no cancelled event ran")
	require.Empty(t, h.dead())
	require.InDelta(t, 5, h.metric("pinwheel_events_total", "outcome", "cancelled"), 0)
	for body, code := range map[string]string{
		`{"owner":"acme"}`: "400 which events", `{"owner":"acme","events":["x"],"all":true}`: "400 events are named",
		`{"owner":"acme","events":[""]}`: "400 events", `{"owner":"acme","kind":"x"}`: "400 kind",
		`{"owner":"*","all":true}`: "400 owner", `{"owner":"acme","events":["none"]}`: "404 no event",
	} {
		_, failure := h.control("events.cancel", body)
		require.Regexp(t, "^"+code, failure, body)
	}
}

const cancelledWorker = `export default {
  async task(event) {
    console.log("begins " + event.id);
    const how = event.payload;
    if (how === "spin") for (;;);
    setTimeout(() => {}, 600000); // a handler that waits for its signal only could never finish
    if (how === "heeds") {
      await new Promise((done) => event.signal.addEventListener("abort", () => { console.log("heard " + event.signal.reason.name); done(); }));
      return { success: true };
    }
    await new Promise((done) => setTimeout(done, 600000));
  },
  async fetch(request) {
    console.log("begins fetch");
    await new Promise((done) => { request.signal.onabort = done; setTimeout(done, 600000); });
    return new Response("too late");
  },
}`

// A running event is cancelled from another process, in cells and without: its signal fires, its reply says cancelled,
// and so does the history. It does not run again.
func TestRunningEventsAreCancelled(t *testing.T) {
	t.Parallel()
	for _, cell := range []string{"shared", "all"} {
		t.Run(cell, func(t *testing.T) {
			t.Parallel()
			srv := natstest.Start(t)
			open := func() *testFleet {
				return openFleet(t, withToken, func(c *config.Config) {
					c.NatsURL, c.Cell, c.Runs = srv.URL(), cell, "failures"
				})
			}
			h := open()
			b := countBegun(t, h.nc)
			heard := make(chan string, 8)
			_, err := h.nc.Subscribe("pinwheel.logs.>", func(m *nats.Msg) {
				if strings.Contains(string(m.Data), "heard AbortError") {
					heard <- "yes"
				}
			})
			require.NoError(t, err)
			h.deploy("acme", "w", cancelledWorker, `{"limits":{"cpuMs":30000,"wallMs":600000}}`)
			open() // either runs them, and either answers
			for _, id := range []string{"heeds", "waits", "fetch", "spin"} {
				kind := events.Task
				if id == "fetch" {
					kind = events.Fetch // of a requester that does not take the body in chunks
				}
				reply := h.send(kind, "acme/w", `"`+id+`"`, events.HeaderEventID, id)
				require.Eventually(t, func() bool { return h.runs("acme", id) }, patience, 10*time.Millisecond, id)
				// A busy machine may need longer for its end than a cancellation waits.
				require.Contains(t, []cancels.Outcome{cancels.Cancelled, cancels.Ending}, h.cancel("acme", id)[id])
				r := h.reply(reply)
				require.NotNil(t, r.Failure, id)
				require.Equal(t, events.ReasonCancelled, r.Failure.Reason, id)
				require.Equal(t, "cancelled", h.recorded(runs.Filter{Owner: "acme", Event: id}, 1)[0].Outcome, id)
			}
			require.Equal(t, "yes", <-heard)
			h.settled()
			_, most := b.of("acme/w")
			require.Equal(t, 1, most)
			require.Empty(t, h.dead())
		})
	}
}

// An event that is cancelled while it ends has exactly one end: what the cancellation says, the reply and the history
// agree, and a cancelled event that had not begun never does.
func TestCancelRacesWithTheEnd(t *testing.T) {
	t.Parallel()
	h := openFleet(t, withToken, func(c *config.Config) { c.Runs = "all" })
	h.deploy("acme", "w", `export default { async task(event) { await new Promise((done) => setTimeout(done, event.payload)); } }`)
	const n = 60
	var mu sync.Mutex
	outcomes := map[string]cancels.Outcome{}
	var all sync.WaitGroup
	replies := map[string]<-chan *nats.Msg{}
	for i := range n {
		id := fmt.Sprint("e", i)
		replies[id] = h.send(events.Task, "acme/w", fmt.Sprint(i%20), events.HeaderEventID, id)
		if i%6 != 5 {
			continue
		}
		var ids []string
		for k := i - 5; k <= i; k++ {
			ids = append(ids, fmt.Sprint("e", k))
		}
		all.Go(func() {
			a, err := control.Ask(context.Background(), h.client(), control.EventsCancel,
				control.CancelEvents{ListEvents: control.ListEvents{Owner: "acme"}, Names: ids})
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, e := range a.Events {
				outcomes[e.ID] = e.Outcome
			}
		})
	}
	all.Wait()
	cancelled := 0
	for id, c := range replies {
		r := h.reply(c)
		list := h.recorded(runs.Filter{Owner: "acme", Event: id}, 1)
		if outcomes[id] == cancels.Cancelled || outcomes[id] == cancels.Ending && r.Failure != nil {
			cancelled++
			require.NotNil(t, r.Failure, id)
			require.Equal(t, events.ReasonCancelled, r.Failure.Reason)
			require.Equal(t, "cancelled", list[0].Outcome)
			continue
		}
		require.Nil(t, r.Failure, "%s: %v", id, r.Failure)
		require.Equal(t, "ok", list[0].Outcome)
	}
	t.Log(cancelled, "of", n, "were cancelled")
	h.settled()
	require.Empty(t, h.dead())
}

// purge purges events, and returns the ended job.
func (h *testFleet) purge(r control.PurgeEvents) control.Job {
	h.t.Helper()
	j, err := control.Ask(h.t.Context(), h.client(), control.EventsPurge, r)
	require.NoError(h.t, err)
	j, err = control.FollowJob(h.t.Context(), h.client(), j, func(control.JobLetter, control.Job, int) {})
	require.NoError(h.t, err)
	require.Equal(h.t, "done", j.State, j.Error)
	return j
}

// A purge takes out exactly what waited when it began: each event runs or is purged, and no event does both, also while
// events come and run. Events of others, of other kinds, and those that come later stay.
func TestPurgeIsExact(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	open := func() *testFleet {
		return openFleet(t, withToken, func(c *config.Config) { c.NatsURL, c.OwnerMaxQueued = srv.URL(), 20 })
	}
	h := open()
	b := countBegun(t, h.nc)
	slow := `export default { async task(event) { console.log("begins " + event.id); await new Promise((done) => setTimeout(done, 20)); },
		fetch() { return new Response("ok"); } }`
	h.deploy("acme", "w", slow, `{"concurrency":2}`)
	h.deploy("bob", "w", slow)
	h.pause("acme", "w")
	open()
	const before, delayed, after = 300, 20, 50
	for i := range before {
		h.send(events.Task, "acme/w", `1`, events.HeaderEventID, fmt.Sprint("before", i))
	}
	for i := range delayed {
		h.send(events.Task, "acme/w", `1`, events.HeaderEventID, fmt.Sprint("delayed", i), events.HeaderDeliverAfter, "1h")
	}
	call := h.send(events.Fetch, "acme/w", ``, events.HeaderEventID, "call")
	h.send(events.Task, "bob/w", `1`, events.HeaderEventID, "bob")
	require.Eventually(t, func() bool { // an event that moves meanwhile may be counted in both places
		return h.purge(control.PurgeEvents{DryRun: true,
			ListEvents: control.ListEvents{Owner: "acme", Kind: "task"}}).Total == before+delayed
	}, patience, 10*time.Millisecond)
	require.Zero(t, h.purge(control.PurgeEvents{ListEvents: control.ListEvents{Owner: "acme", Older: 3_600_000}}).Total)
	h.resume("acme", "w")
	var publishing sync.WaitGroup
	publishing.Go(func() {
		for i := range after {
			m := nats.NewMsg(events.Subjects(events.DefaultPrefix).Event(events.Task, "acme", "w"))
			m.Header.Set(events.HeaderEventID, fmt.Sprint("while", i))
			if _, err := h.js.PublishMsg(context.Background(), m); err != nil {
				t.Error(err)
			}
		}
	})
	require.Eventually(t, func() bool { n, _ := b.of("acme/w"); return n > 0 }, patience, time.Millisecond)
	j := h.purge(control.PurgeEvents{ListEvents: control.ListEvents{Owner: "acme", Kind: "task"}})
	publishing.Wait()
	require.Nil(t, h.reply(call).Failure, "it is of another kind")
	require.Eventually(t, func() bool { n, _ := b.of("acme/w"); return n+j.Done >= before+delayed+after }, patience,
		10*time.Millisecond)
	require.Eventually(t, func() bool { return len(h.places("acme")) == 0 }, patience, 10*time.Millisecond)
	h.settled()
	n, most := b.of("acme/w")
	require.Equal(t, before+delayed+after, n+j.Done, "each ran or was purged")
	require.Equal(t, 1, most)
	require.GreaterOrEqual(t, j.Done, delayed)
	require.Eventually(t, func() bool { n, _ := b.of("bob/w"); return n == 1 }, patience, 10*time.Millisecond)
	require.Empty(t, h.dead())
	t.Logf("%d purged, %d ran, %d were left", j.Done, n, j.Failed)
	for body, code := range map[string]string{
		`{"owner":"acme"}`: "400 which events", `{"owner":"acme","limit":3,"all":true}`: "400 a purge has no page",
		`{"all":true}`: "400 owner", `{"owner":"acme","place":"x"}`: "400 place",
	} {
		_, failure := h.control("events.purge", body)
		require.Regexp(t, "^"+code, failure, body)
	}
}

// While a process does not answer that may have an event, nobody says that the event is cancelled, and a purge ends
// with an error. Both name the process. When it counts as gone, they go on.
func TestCancelAwaitsSilentProcesses(t *testing.T) {
	t.Parallel()
	h := openFleet(t, withToken)
	h.deploy("acme", "w", beginsWorker)
	h.pause("acme", "w")
	h.send(events.Task, "acme/w", `1`, events.HeaderEventID, "one")
	require.Eventually(t, func() bool { return h.places("acme")["one"] == "held" }, patience, 10*time.Millisecond)
	silent := control.Member{ID: nats.NewInbox(), Node: "silent"}
	ctx, stop := context.WithCancel(t.Context())
	var announcing sync.WaitGroup
	announcing.Go(func() {
		for ctx.Err() == nil {
			_ = h.nc.Publish(control.MembersSubject(events.DefaultPrefix), []byte(silent.Hello()))
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
	all := control.CancelEvents{ListEvents: control.ListEvents{Owner: "acme"}, All: true}
	require.Eventually(t, func() bool {
		one, err := control.Ask(t.Context(), h.client(), control.EventsHeld, control.AskHeld{Owner: "acme"})
		return err == nil && len(one.Processes) == 2
	}, patience, 10*time.Millisecond)
	a, err := control.Ask(t.Context(), h.client(), control.EventsCancel, all)
	require.NoError(t, err)
	require.Equal(t, []string{silent.ID}, a.Silent)
	require.Len(t, a.Events, 1)
	require.Equal(t, cancels.Ending, a.Events[0].Outcome)
	require.Contains(t, h.places("acme"), "one", "it is not deleted")
	j, err := control.Ask(t.Context(), h.client(), control.EventsPurge,
		control.PurgeEvents{ListEvents: control.ListEvents{Owner: "acme"}, All: true})
	require.NoError(t, err)
	j, err = control.FollowJob(t.Context(), h.client(), j, func(control.JobLetter, control.Job, int) {})
	require.NoError(t, err)
	require.Contains(t, j.Error, silent.ID)
	require.Zero(t, j.Done)
	stop()
	announcing.Wait()
	require.Eventually(t, func() bool {
		a, err := control.Ask(t.Context(), h.client(), control.EventsCancel, all)
		return err == nil && a.Cancelled == 1
	}, patience, 10*time.Millisecond)
	require.Empty(t, h.places("acme"))
}
