package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/client"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

const ticking = `export default {
  async scheduled(event, env) { await env.SELF.send({ tick: event.scheduledTime, cron: event.cron, id: event.id }) },
  async task(event) { console.log(JSON.stringify(event.payload)) },
};
`

// deployTicking deploys acme/w with a manifest, and collects the output of its ticks.
func deployTicking(t *testing.T, f *fleettest.Fleet, schedules string) (lines chan string) {
	t.Helper()
	nc, err := natstest.Dial(f.URL)
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	lines = make(chan string, 100)
	_, err = nc.Subscribe("pinwheel.logs.acme.w", func(m *nats.Msg) {
		if l := string(m.Data); !strings.Contains(l, "not run: no-") { // Deploy asks the process whether it has the worker
			lines <- l
		}
	})
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
	dir := t.TempDir()
	path := filepath.Join(dir, "w.js")
	require.NoError(t, os.WriteFile(path, []byte(ticking), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "w.pinwheel.json"),
		[]byte(`{"queues": {"SELF": "w"}, "schedules": `+schedules+`}`), 0o600))
	f.Deploy(t, path, "--owner", "acme")
	return lines
}

func next(t *testing.T, lines chan string) string {
	t.Helper()
	select {
	case l := <-lines:
		return l
	case <-time.After(patience):
		t.Fatal("nothing ticks")
		return ""
	}
}

func TestSchedulesTickByThemselves(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	require.Equal(t, "WORKER  NAME  SCHEDULE  LAST  NEXT\n", f.Pinwheel("schedules", "ls").Out)
	lines := deployTicking(t, f, `[{"name": "often", "cron": "@every 1s", "overlap": "forbid"}, {"cron": "0 9 * * 1-5", "timeZone": "Europe/Berlin"}]`)
	first, second := next(t, lines), next(t, lines)
	require.Contains(t, first, `@every 1s`)
	require.Contains(t, first, `cron:acme:w:often:`)
	require.NotEqual(t, first, second)

	r := f.Pinwheel("schedules", "ls", "--owner", "acme")
	require.Regexp(t, `(?m)^acme/w +often +@every 1s, overlap forbid, misfire once +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\S+ +\d{4}-.*$`, r.Out)
	require.Regexp(t, `(?m)^acme/w +2 +0 9 \* \* 1-5 Europe/Berlin, overlap allow, misfire once +- +\d{4}-`, r.Out)
	for _, change := range []string{"pause", "resume"} { // these are not ticks
		require.Zero(t, f.Pinwheel("schedules", change, "acme/w", "2").Code)
		require.Regexp(t, `(?m)^acme/w +2 +0 9 \* \* 1-5 Europe/Berlin, overlap allow, misfire once +- +`, f.Pinwheel("schedules", "ls").Out)
	}
	require.Contains(t, f.Pinwheel("schedules", "ls", "--json").Out, `"name":"often","cron":"@every 1s","overlap":"forbid","misfire":"once"`)
	require.Contains(t, f.Pinwheel("workers", "show", "acme/w").Out, "often: @every 1s")

	require.Equal(t, "paused often of acme/w\n", f.Pinwheel("schedules", "pause", "acme/w", "often").Out)
	require.Contains(t, f.Pinwheel("schedules", "ls").Out, "paused")
	last := func() string { return strings.Fields(f.Pinwheel("schedules", "ls").Out)[14] }
	require.Contains(t, f.Pinwheel("schedules", "resume", "acme/w", "nothing").Err,
		`no schedule "nothing": it has often, 2`)
	require.Equal(t, "resumed often of acme/w\n", f.Pinwheel("schedules", "resume", "acme/w", "often").Out)
	was := last()
	require.Eventually(t, func() bool { return last() != was }, patience, tick)

	require.Zero(t, f.Pinwheel("workers", "rm", "acme/w").Code)
	require.Eventually(t, func() bool {
		return f.Pinwheel("schedules", "ls").Out == "WORKER  NAME  SCHEDULE  LAST  NEXT\n"
	}, patience, tick, "the processes of the fleet hear of it")
}

func TestSchedulesThatAreWrongAreRefused(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "w.js")
	write := func(code, schedules string) {
		require.NoError(t, os.WriteFile(path, []byte(code), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "w.pinwheel.json"), []byte(`{"schedules": `+schedules+`}`), 0o600))
	}
	write(ticking, `[{"cron": "61 * * * *"}]`)
	r := f.Pinwheel("deploy", path, "--owner", "acme")
	require.NotZero(t, r.Code)
	require.Contains(t, r.Err, `schedules[0].cron is "61 * * * *"`)
	write(`export default { fetch() { return new Response() } }`, `[{"cron": "@daily"}]`)
	r = f.Pinwheel("deploy", path, "--owner", "acme")
	require.NotZero(t, r.Code)
	require.Contains(t, r.Err, "no scheduled handler")
}

func TestDelayedEventsWaitAreListedAndCancelled(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	lines := deployTicking(t, f, `[]`)
	for _, id := range []string{"late", "later"} {
		r := f.Pinwheel("send", "task", "acme/w", "--data", `"`+id+`"`, "--after", "1h", "--id", id, "--no-wait")
		require.Zero(t, r.Code, r.Err)
	}
	require.Eventually(t, func() bool {
		return strings.Count(f.Pinwheel("schedules", "waiting", "--json").Out,
			"\n") == 2
	}, patience, tick)
	require.Regexp(t, `(?m)^\d{4}-\S+ \S+ +acme/w +task +1 +late$`, f.Pinwheel("schedules", "waiting", "--owner", "acme").Out)
	require.NotContains(t, f.Pinwheel("schedules", "waiting", "--owner", "other").Out, "late")

	require.Equal(t, "cancelled 1\n", f.Pinwheel("schedules", "cancel", "acme/w", "late").Out)
	r := f.Pinwheel("schedules", "cancel", "acme/w", "late")
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Err, `no event "late" of acme/w waits`)

	nc, err := natstest.Dial(f.URL)
	require.NoError(t, err)
	defer nc.Close()
	c, err := client.New(nc)
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	n, err := c.Cancel(t.Context(), "acme", "w", "later")
	require.NoError(t, err)
	require.Equal(t, 1, n)
	n, err = c.Cancel(t.Context(), "acme", "w", "later")
	require.NoError(t, err)
	require.Zero(t, n)
	_, err = c.Cancel(t.Context(), "acme", "w", "")
	require.ErrorIs(t, err, client.ErrMalformed)

	at := time.Now().Add(time.Second)
	_, err = c.Publish(t.Context(), client.Request{Kind: events.Task, Owner: "acme", Worker: "w", ID: "soon",
		Body: []byte(`"soon"`), DeliverAt: at})
	require.NoError(t, err)
	_, err = c.Publish(t.Context(), client.Request{Kind: events.Task, Owner: "acme", Worker: "w",
		DeliverAfter: -time.Second})
	require.ErrorIs(t, err, client.ErrMalformed)
	require.Contains(t, next(t, lines), "soon")
	require.False(t, time.Now().Before(at))
	r = f.Pinwheel("send", "task", "acme/w", "--data", `"x"`, "--after", "1h", "--at", "2026-01-01T00:00:00Z")
	require.Equal(t, 2, r.Code)
}
