package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
)

func TestControlSchedules(t *testing.T) {
	t.Parallel()
	h := openFleet(t, withToken)
	code := `export default { scheduled() {}, task() {} }`
	h.deploy("acme", "w", code, `{"schedules": [{"name": "night", "cron": "0 3 * * *", "timeZone": "Europe/Berlin"}, {"name": "yearly", "cron": "@yearly"}]}`)
	h.deploy("acme", "x", code, `{"schedules": [{"cron": "@hourly"}]}`)
	h.deploy("bob", "w", code, `{"schedules": [{"cron": "@daily"}]}`)

	names := func(answer map[string]any) (list []string) {
		for _, s := range answer["schedules"].([]any) {
			s := s.(map[string]any)
			list = append(list, fmt.Sprintf("%s/%s %s", s["owner"], s["worker"], s["name"]))
			require.NotEmpty(t, s["next"])
		}
		return list
	}
	require.Equal(t, []string{"acme/w night", "acme/w yearly", "acme/x 1", "bob/w 1"}, names(h.ask("schedules.list", "")))
	require.Equal(t, []string{"bob/w 1"}, names(h.ask("schedules.list", `{"owner":"bob"}`)))
	page := h.ask("schedules.list", `{"limit":1}`)
	require.Equal(t, []string{"acme/w night", "acme/w yearly"}, names(page), "a worker's come together")
	page = h.ask("schedules.list", fmt.Sprintf(`{"limit":2,"after":%q}`, page["next"]))
	require.Equal(t, []string{"acme/x 1", "bob/w 1"}, names(page))
	require.NotContains(t, page, "next")

	ticks := h.ask("schedules.next", `{"worker":"acme/w","name":"night","count":3}`)["ticks"].([]any)
	require.Len(t, ticks, 3)
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	last := time.Now()
	for _, text := range ticks {
		tick, err := time.Parse(time.RFC3339, text.(string))
		require.NoError(t, err)
		require.Equal(t, 3, tick.In(berlin).Hour())
		require.True(t, tick.After(last) && tick.Before(last.Add(26*time.Hour)), "%s after %s", tick, last)
		last = tick
	}
	require.Len(t, h.ask("schedules.next", `{"worker":"acme/w","name":"night"}`)["ticks"], 10)

	require.Equal(t, true, h.ask("schedules.pause", `{"worker":"acme/w","name":"night"}`)["paused"])
	require.Equal(t, map[string]any{"worker": "acme/w", "name": "night", "ticks": []any{}, "paused": true},
		h.ask("schedules.next", `{"worker":"acme/w","name":"night"}`))
	require.Equal(t, false, h.ask("schedules.resume", `{"worker":"acme/w","name":"night"}`)["paused"])
}

func TestControlWaitingEvents(t *testing.T) {
	t.Parallel()
	h := openFleet(t, withToken)
	h.deploy("acme", "w", `export default { task() {} }`)
	for i := range 3 {
		h.send(events.Task, "acme/w", "secret", events.HeaderEventID, fmt.Sprint("e", i), events.HeaderDeliverAfter, "1h")
	}
	h.send(events.Task, "bob/w", "", events.HeaderEventID, "e0", events.HeaderDeliverAfter, "1h")
	waiting := func(request string) (ids []string, next any) {
		answer := h.ask("schedules.waiting", request)
		for _, e := range answer["events"].([]any) {
			e := e.(map[string]any)
			require.NotContains(t, fmt.Sprint(e), "secret")
			ids = append(ids, fmt.Sprintf("%s %s", e["owner"], e["id"]))
		}
		return ids, answer["next"]
	}
	require.Eventually(t, func() bool { ids, _ := waiting(""); return len(ids) == 4 }, patience, 5*time.Millisecond)
	ids, _ := waiting(`{"owner":"bob","worker":"w"}`)
	require.Equal(t, []string{"bob e0"}, ids)
	first, next := waiting(`{"owner":"acme","limit":2}`)
	rest, end := waiting(fmt.Sprintf(`{"owner":"acme","limit":2,"after":%.0f}`, next))
	require.ElementsMatch(t, []string{"acme e0", "acme e1", "acme e2"}, append(first, rest...))
	require.Len(t, rest, 1)
	require.Nil(t, end)

	require.EqualValues(t, 1, h.ask("schedules.cancel", `{"worker":"acme/w","id":"e1"}`)["cancelled"])
	require.EqualValues(t, 0, h.ask("schedules.cancel", `{"worker":"acme/w","id":"e1"}`)["cancelled"])
	ids, _ = waiting(`{"owner":"acme"}`)
	require.ElementsMatch(t, []string{"acme e0", "acme e2"}, ids)
}

func TestControlScheduleRequestsThatAreWrong(t *testing.T) {
	t.Parallel()
	h := openFleet(t, withToken)
	h.deploy("acme", "w", `export default { scheduled() {} }`, `{"schedules": [{"name": "night", "cron": "@daily"}]}`)
	for _, c := range [][3]string{
		{"schedules.list", `{"owner":"a.b"}`, `400 owner "a.b": a name is`},
		{"schedules.list", `{"limit":1001}`, "400 limit is 1001: it is 1 to 1000"},
		{"schedules.next", `{"worker":"acme","name":"night"}`, "400 "},
		{"schedules.next", `{"worker":"acme/w","name":"day"}`, `404 worker acme/w has no schedule "day": it has night`},
		{"schedules.next", `{"worker":"acme/w","name":"night","count":101}`, "400 count is 101: it is 1 to 100"},
		{"schedules.pause", `{"worker":"acme/gone","name":"night"}`, "404 no such worker: acme/gone"},
		{"schedules.resume", `{"nme":"night"}`, `400 unknown field "nme": a request may have worker, name`},
		{"schedules.waiting", `{"worker":"a b"}`, `400 worker "a b": a name is`},
		{"schedules.cancel", `{"worker":"acme/w"}`, "400 not an event id"},
		{"schedules.cancel", `{"id":"e1"}`, "400 "},
		{"workers.active", `{"worker":"acme"}`, "400 "},
	} {
		_, failure := h.control(c[0], c[1])
		require.Contains(t, failure, c[2], "%s %s", c[0], c[1])
	}
}
