package console_test

import (
	"html"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/process/config"
)

// The run history is listed by filters in the address. The page of an event is a time line of its attempts with their
// lines, up to its letter, from where it runs again.
func TestRunsAndTimeLine(t *testing.T) {
	t.Parallel()
	const evil = `</ol><script>hurt()</script>`
	f := startFleet(t, func(c *config.Config) { c.Runs = "all" })
	deployed(t, f, "w", `export default {
		async fetch(request, env, ctx) { ctx.waitUntil(new Promise(done => setTimeout(done, 5))); return new Response("ok") },
		task(event) { console.log("line </ol><script>hurt()</script>"); throw new Error("no </ol><script>hurt()</script>"); } }`)
	require.Contains(t, f.Pinwheel("send", "task", "acme/w", "--id", "<b>one</b>").Err, "exception")
	require.Zero(t, f.Pinwheel("send", "fetch", "acme/w", "--id", "two").Code)
	base := startConsole(t, f)
	p, viewer := newPerson(t, base, operateToken), newPerson(t, base, viewToken)
	require.Eventually(t, func() bool { return strings.Count(p.page("/runs"), "#run-") == 3 }, patience, patience/1000)
	page := p.page("/runs?outcome=failed&worker=acme/w")
	require.Equal(t, 2, strings.Count(page, "#run-"))
	require.Contains(t, page, "&lt;b&gt;one&lt;/b&gt;")
	require.Equal(t, 1, strings.Count(p.page("/runs?outcome=ok&version=1"), "#run-"))
	require.Contains(t, p.page("/runs?owner=acme&text=nowhere"), "No run matches")
	require.Equal(t, 2, strings.Count(p.page("/runs?text=LINE+"), "#run-"), "lines are looked at")
	code, _ := p.get("/runs?outcome=good")
	require.Equal(t, 400, code)
	code, _ = p.get("/runs?before=x")
	require.Equal(t, 400, code)

	const event = "/event?owner=acme&worker=w&id=%3Cb%3Eone%3C%2Fb%3E"
	var letter bool
	require.Eventually(t, func() bool {
		page = p.page(event)
		letter = strings.Contains(page, ">Run again …</a>")
		return letter
	}, patience, patience/1000)
	require.NotContains(t, page, "<script>hurt")
	page = html.UnescapeString(page)
	require.Contains(t, page, "line "+evil)
	for i, want := range []string{`>stored</span>`, "attempt 1 ", "attempt 2 ", ">dead</span>"} {
		at := strings.Index(page, want)
		require.Positive(t, at, "%d: %s", i, want)
		page = page[at:]
	}
	require.NotContains(t, viewer.page(event), "Run again")
	require.Contains(t, p.page("/event?owner=acme&worker=w&id=two"), "by waitUntil after the reply")
}

func TestRunsOfAFleetWithoutHistory(t *testing.T) {
	t.Parallel()
	p := newPerson(t, startConsole(t, startFleet(t)), viewToken)
	require.Contains(t, p.page("/runs"), "There is no run history")
	require.Contains(t, p.page("/event?owner=acme&worker=w&id=x"), "The fleet keeps no history of runs")
}

// The usage of a month is shown by owner, worker and day.
func TestUsagePage(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	deployed(t, f, "w", `export default { fetch: () => new Response("ok") }`)
	require.Zero(t, f.Pinwheel("send", "fetch", "acme/w").Code)
	p := newPerson(t, startConsole(t, f), viewToken)
	require.Eventually(t, func() bool { return strings.Contains(p.page("/usage"), `href="/owners/acme"`) }, patience,
		patience/1000)
	require.Contains(t, p.page("/usage?by=worker"), `href="/workers/acme/w"`)
	require.Contains(t, p.page("/usage?by=day"), `<td class="n">1</td>`)
	require.Contains(t, p.page("/usage?month=2001-01"), "Nothing was used in January 2001")
	for _, wrong := range []string{"by=week", "month=x", "owner=%2A"} {
		code, _ := p.get("/usage?" + wrong)
		require.Equal(t, 400, code, wrong)
	}
}
