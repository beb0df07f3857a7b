package e2e

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
)

// Each event that has not ended is in one place, is found there by its ref and by its ID, and a process says which of
// them runs. An owner finds none of another's.
func TestEventsAreFoundWhereTheyAre(t *testing.T) {
	t.Parallel()
	h := openFleet(t, withToken)
	code := `export default { async task(event) { if (event.payload.wait) await new Promise(() => setTimeout(() => {}, 60000)); } }`
	h.deploy("acme", "w", code)
	h.deploy("acme", "x", code)
	h.deploy("bob", "w", code)
	h.send(events.Task, "acme/x", `{"wait":true}`, events.HeaderEventID, "runs", "X-Of", "acme")
	h.send(events.Task, "acme/w", `"later"`, events.HeaderEventID, "delayed", events.HeaderDeliverAfter, "1h")
	h.pause("acme", "w")
	h.pause("bob", "")
	for i := range 3 {
		h.send(events.Task, "acme/w", `{"n":1}`, events.HeaderEventID, fmt.Sprint("held", i))
	}
	h.send(events.Task, "bob/w", `"secret"`, events.HeaderEventID, "parked")
	moving := true // an event that moves while it is listed may be there twice
	list := func(r control.ListEvents) (all map[string]control.QueuedEvent) {
		all = map[string]control.QueuedEvent{}
		for {
			page, err := control.Ask(t.Context(), h.client(), control.EventsList, r)
			require.NoError(t, err)
			for _, q := range page.Events {
				if !moving {
					require.NotContains(t, all, q.ID)
				}
				all[q.ID] = q
			}
			if r.After = page.Next; r.After == "" {
				return all
			}
		}
	}
	want := map[string]string{"runs": "lane", "delayed": "delayed", "held0": "held", "held1": "held", "held2": "held"}
	require.Eventually(t, func() bool {
		have := map[string]string{}
		for id, q := range list(control.ListEvents{Owner: "acme", Limit: 2}) {
			have[id] = q.Place
		}
		return fmt.Sprint(have) == fmt.Sprint(want) && len(list(control.ListEvents{Owner: "bob", Place: "parked"})) == 1
	}, patience, 10*time.Millisecond)
	moving = false
	require.Len(t, list(control.ListEvents{Worker: "acme/w", Place: "held"}), 3)
	require.Empty(t, list(control.ListEvents{Owner: "acme", Older: 3_600_000}))

	show := func(owner, id string) (control.QueuedEvent, error) {
		return control.Ask(t.Context(), h.client(), control.EventsShow, control.ShowEvent{Owner: owner, ID: id})
	}
	for id, q := range list(control.ListEvents{Owner: "acme"}) {
		for _, name := range []string{id, q.Ref} {
			found, err := show("acme", name)
			require.NoError(t, err, name)
			require.Equal(t, []any{q.Ref, q.ID, q.Place}, []any{found.Ref, found.ID, found.Place})
			require.NotNil(t, found.Body)
			_, err = show("bob", name)
			var refused *control.Error
			require.ErrorAs(t, err, &refused)
			require.Equal(t, http.StatusNotFound, refused.Code, "it is another owner's")
		}
	}
	found, err := show("acme", "runs")
	require.NoError(t, err)
	require.Equal(t, []string{"acme"}, found.Headers["X-Of"])
	require.JSONEq(t, `{"wait":true}`, *found.Body)

	require.Eventually(t, func() bool {
		all, _, err := control.AskHeldEvents(t.Context(), h.client(), control.AskHeld{Owner: "acme"})
		return err == nil && len(all) == 1 && all[0].All == 1 && all[0].Events[0].Is(found) &&
			all[0].Events[0].State == "running" && !all[0].Events[0].Began.IsZero()
	}, patience, 10*time.Millisecond)
	for body, code := range map[string]string{
		`{}`: "400 owner", `{"owner":"*"}`: "400 owner", `{"owner":"acme","worker":"*"}`: "400 worker",
		`{"owner":"acme","place":"x"}`: "400 place", `{"owner":"acme","after":"lane"}`: "400 after",
		`{"owner":"acme","after":"x:1"}`: "400 after", `{"owner":"acme","olderMs":-1}`: "400 olderMs",
		`{"owner":"acme","limit":1001}`: "400 limit",
	} {
		_, failure := h.control("events.list", body)
		require.Regexp(t, "^"+code, failure, body)
	}
}
