package console_test

import (
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What an owner may have is said in words where one reads it, and as JSON without escapes where one writes it.
func TestPolicyIsReadInWords(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	require.Zero(t, f.Pinwheel("owners", "set", "acme", "--weight", "3", "--cpu", "200ms", "--nats-publish",
		"orders.>,a.b").Code)
	p := newPerson(t, startConsole(t, f), operateToken)
	const words = `title="weight 3, natsPublish orders.>, a.b, ceilings cpuMs 200">weight 3,`
	require.Eventually(t, func() bool { return strings.Contains(html.UnescapeString(p.page("/owners")), words) }, patience,
		10*time.Millisecond)
	require.NotContains(t, html.UnescapeString(p.page("/owners")), `{"`)
	page := html.UnescapeString(p.page("/owners/acme"))
	require.Contains(t, page, `"orders.>"`)
	require.NotContains(t, page, `\u003e`)
	require.Regexp(t, `<textarea name="policy" rows="(9|1\d)"`, page, "all of it is seen")
	require.Contains(t, html.UnescapeString(p.page("/owners/acme/remove")), `"orders.>"`)
	p.does("/owners/acme", "/owners/acme", url.Values{"policy": {`{"weight": 3, "natsPublish": ["b.>"]}`}})
	require.Contains(t, html.UnescapeString(p.page("/owners/acme")), `"b.>"`)
}

// The audit is filtered by what was done, and says when by the clock too.
func TestAuditIsFiltered(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	deployed(t, f, "w", `export default { task() {} }`)
	require.Zero(t, f.Pinwheel("owners", "set", "acme", "--weight", "2").Code)
	p := newPerson(t, startConsole(t, f), viewToken)
	require.Contains(t, p.page("/audit"), "2 changes, the newest first, with times in UTC.")
	page := p.page("/audit?what=owners.set&owner=acme")
	require.Contains(t, page, "1 change, the newest first")
	require.Contains(t, page, `<option value="owners.set" selected>set the policy of</option>`)
	require.Regexp(t, `<span class="id">\d{4}-\d\d-\d\d \d\d:\d\d:\d\d</span>`, page)
	require.NotContains(t, page, "deployed\n")
	page = html.UnescapeString(p.page("/audit?what=kv.rm"))
	require.Contains(t, page, "No such change")
	require.Contains(t, page, `href="?since=2160h&what=kv.rm"`, "a longer time keeps the filter")
	require.Contains(t, page, `<a class="button quiet" href="/audit">Clear</a>`)
}

// Pages lead on: from a letter to its version and its schedules, from an event that waits to its end. An action goes
// back to the filter from which it came.
func TestPagesLeadOn(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	deployed(t, f, "w", `export default { scheduled() { throw new Error("no"); }, task() {} }`,
		`"schedules": [{"cron": "0 3 * * *", "name": "nightly"}]`)
	require.Contains(t, f.Pinwheel("send", "scheduled", "acme/w", "--cron", "0 3 * * *").Err, "exception")
	require.Zero(t, f.Pinwheel("send", "task", "acme/w", "--after", "24h", "--id", "later/1", "--no-wait").Code)
	base := startConsole(t, f)
	p, viewer := newPerson(t, base, operateToken), newPerson(t, base, viewToken)
	page := p.page("/dead/" + firstLetter(t, p, "/dead"))
	version := regexp.MustCompile(`href="/workers/acme/w#(1-[0-9a-f]+)"`).FindStringSubmatch(page)
	require.NotNil(t, version, page)
	require.Contains(t, page, `<a href="/workers/acme/w#ticks">its schedules</a>`)
	require.Regexp(t, `\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC</span></dd>`, page, "times are there without a pointer")
	require.Regexp(t, `data-copy="[^"]+" data-what="event id"`, page)
	page = p.page("/workers/acme/w")
	require.Contains(t, page, `id="`+version[1]+`"`)
	require.Contains(t, page, `id="ticks"`)
	require.Contains(t, page, `<span class="hint">UTC</span>`, "a schedule has a zone")
	require.NotContains(t, page[strings.Index(page, `id="ticks"`):], "<th>Worker</th>",
		"a page of one worker names it once")

	const waiting = "/event?owner=acme&worker=w&id=later%2f1"
	cancel := `<a href="/schedules/cancel?worker=acme/w&amp;id=later%2f1">Cancel it …</a>`
	require.Eventually(t, func() bool { return strings.Contains(p.page(waiting), cancel) }, patience, 10*time.Millisecond)
	require.NotContains(t, viewer.page(waiting), "Cancel")
	page = html.UnescapeString(p.page("/schedules?owner=acme"))
	require.Equal(t, 2, strings.Count(page, `name="back" value="/schedules?owner=acme"`), "of a schedule, and of an event")
	require.Contains(t, page, `href="/schedules">Clear</a>`)
	require.Contains(t, p.page("/schedules?owner=other"), "This owner has none.")
	require.NotContains(t, viewer.page("/schedules"), "<form method=\"post\" action=\"/schedules")
}

// What is cut off in a list is whole where the pointer rests, and an action that asks first says so by its dots.
func TestListsHaveWholeTexts(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	deployed(t, f, "bad", `export default { task() { throw new Error("it's <b>away</b> "+ "x".repeat(300)); } }`)
	require.Contains(t, f.Pinwheel("send", "task", "acme/bad").Err, "exception")
	p := newPerson(t, startConsole(t, f), operateToken)
	id := firstLetter(t, p, "/dead")
	page := p.page("/dead")
	require.NotContains(t, page, "<b>away")
	require.Contains(t, html.UnescapeString(page), "<b>away</b> "+strings.Repeat("x", 300))
	require.Contains(t, page, `title="acme/bad"><span>acme/</span><span>bad</span></a>`)
	for _, does := range []string{"Replay chosen …", "Remove chosen …", "Replay all …", "Remove all …"} {
		require.Contains(t, page, does)
	}
	page = p.page("/dead/" + id)
	for _, does := range []string{">Replay …<", ">Edit …<", ">Remove …<"} {
		require.Contains(t, page, does)
	}
	require.Contains(t, p.page("/workers/acme/bad"), `title="No process keeps it warm: its next event starts cold."`)
}
