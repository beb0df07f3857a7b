package console_test

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/operate/console"
	"github.com/pinwheel-run/pinwheel/internal/operate/doctor"
)

// form is a form with the token of the session, as a page of the console has it.
func (p *person) form(from string, fields url.Values) url.Values {
	p.t.Helper()
	field := csrfField.FindStringSubmatch(p.page(from))
	require.NotNil(p.t, field, "%s has no form", from)
	fields.Set("csrf", field[1])
	return fields
}

// What is refused stays in its form, with what the person wrote, and the page says why.
func TestRefusedFormsKeepTheirTexts(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	for n := range 2 {
		deployed(t, f, "bad", fmt.Sprintf(`export default { task() { throw new Error("no %d"); } }`, n))
	}
	require.Contains(t, f.Pinwheel("send", "task", "acme/bad", "--data", `{"a":1}`).Err, "exception")
	p := newPerson(t, startConsole(t, f), operateToken)
	id := firstLetter(t, p, "/dead")
	edit := "/dead/" + id + "/edit"
	for _, c := range []struct {
		from, path string
		fields     url.Values
		says, kept string
	}{
		{"/owners/acme", "/owners/acme", url.Values{"policy": {"{\n  \"weight\": 3,\n  \"maxRunning\" 7\n}"},
			"seen": {"{}"}},
			"line 3 is no JSON", `"maxRunning" 7`},
		{"/owners/acme", "/owners/acme", url.Values{"policy": {`{"colour": "<b>"}`}, "seen": {"{}"}}, "colour",
			`{"colour": "<b>"}`},
		{"/owners/acme", "/owners/acme", url.Values{"policy": {`{"compilers": "none"}`}, "seen": {"{}"}},
			`compilers is "none": it is full or baseline`, `{"compilers": "none"}`},
		{"/owners/acme", "/owners/acme", url.Values{"policy": {`{"weight": 5}`}, "seen": {`{"weight": 9}`}},
			"somebody has changed the policy", `{"weight": 5}`},
		{edit, edit, url.Values{"body": {`{"a":"mine"}`}, "headers": {"no colon"}}, "each line is Name: value",
			`"mine"`},
		{edit, edit, url.Values{"body": {`{"a":1}`}, "headers": {"X-A: 1\nno colon"}},
			"each line is Name: value", "X-A: 1\nno colon"},
		{"/dead/replay?ids=" + id, "/dead/replay", url.Values{"ids": {id}, "rate": {"fast"}, "to": {"bad@1"}},
			"it is a number of letters a second", `value="bad@1"`},
		{"/dead/replay?ids=" + id, "/dead/replay", url.Values{"ids": {id}, "rate": {"7"},
			"to": {"a/b/c@@"}}, "to", `value="a/b/c@@"`},
		{"/dead/replay?ids=" + id, "/dead/replay", url.Values{"ids": {id}, "maxReplays": {"-1"}},
			"it is 1 or more", `value="-1"`},
		{"/workers/acme/bad/promote?version=1", "/workers/acme/bad/promote",
			url.Values{"version": {"1"}, "percent": {"120"}, "message": {"it's new"}}, "it is above 0, to 100",
			`value="it's new"`},
	} {
		code, body, _ := p.send(c.path, p.form(c.from, c.fields))
		require.True(t, code == 400 || code == 409, "%s: %d", c.path, code)
		body = html.UnescapeString(body)
		require.Regexp(t, `<p class="problem text" role="alert">[^<]*`+regexp.QuoteMeta(c.says), body, c.path)
		require.Contains(t, body, c.kept, c.path)
	}
	for path, kept := range map[string]string{
		"/dead?match=(&owner=acme": `value="("`, "/dead?since=yesterday": `value="yesterday"`,
		"/audit?since=x1":    `value="x1"`,
		"/workers?owner=%2A": `value="*"`, "/workers?page=0": "it is the number of a page",
		"/workers?sort=colour": "traffic",
		"/schedules?owner=%2A": `value="*"`, "/owners?page=x": "it is the number of a page",
		"/audit?page=-1": "the number of a page",
	} {
		code, body := p.get(path)
		require.Equal(t, 400, code, path)
		require.Contains(t, body, `role="alert"`, path)
		require.Contains(t, html.UnescapeString(body), kept, path)
	}
}

// Nothing that is hard to undo is done by one press: a page says what happens first, and its form does it.
func TestActionsAskFirst(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	for n := range 2 {
		deployed(t, f, "w", fmt.Sprintf(`export default { task: () => %d }`, n))
	}
	require.Zero(t, f.Pinwheel("owners", "set", "acme", "--weight", "2").Code)
	base := startConsole(t, f)
	p := newPerson(t, base, operateToken)
	page := p.page("/workers/acme/w")
	require.NotContains(t, page, `method="post" action="/workers`, "the page of a worker does nothing at once")
	require.NotContains(t, p.page("/owners/acme"), `action="/owners/acme/remove"`)
	back := regexp.MustCompile(`Roll back to <span class="id">([^<]+)`).FindStringSubmatch(page)
	require.NotNil(t, back, page)
	for path, want := range map[string][]string{
		"/workers/acme/w/promote?version=" + back[1] + "&percent=25": {back[1], `value="25"`, "has 100 %", ">Promote<"},
		"/workers/acme/w/rollback":                                   {back[1], "has 100 %", ">Roll back<"},
		"/workers/acme/w/reset":                                      {"acme/w end, in all processes", ">Reset<"},
		"/owners/acme/remove":                                        {"weight", ">Remove<"},
		"/schedules/cancel?worker=acme/w&id=%3Cb%3E&back=//evil":     {"&lt;b&gt;", ">Cancel the event<", `name="back" value="/"`},
	} {
		page := p.page(path)
		for _, w := range append(want, `name="csrf"`, "Back, change nothing") {
			require.Contains(t, page, w, path)
		}
	}
	require.Contains(t, p.page("/workers/acme/w"), "100 % of events", "nothing was done")
	viewer := newPerson(t, base, viewToken)
	code, _ := viewer.get("/workers/acme/w/rollback")
	require.Equal(t, http.StatusForbidden, code)
	p.does("/workers/acme/w/rollback", "/workers/acme/w/rollback", url.Values{"version": {back[1]},
		"message": {"too slow"}})
	page = p.page("/workers/acme/w")
	require.Regexp(t, `(?s)class="chosen"[^>]*><td class="id wrap"><a class="whole" href="[^"]*" title="Its code">`+regexp.QuoteMeta(back[1]), page)
	require.Contains(t, page, "too slow")
}

// A letter says its message once, however often its event failed with it, and shows JSON in lines. An edit and a replay
// of it are two pages: the form, and what it changes.
func TestLetterIsReadEditedAndReplayedAtOnce(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	deployed(t, f, "pay", `export default { task(event) { if (event.payload.currency !== "EUR") throw new TypeError("no way to pay " + event.payload.currency); } }`)
	require.Contains(t, f.Pinwheel("send", "task", "acme/pay", "--data", `{"currency":"XXX","lines":[1,{"a":"b"}]}`).
		Err, "exception")
	p := newPerson(t, startConsole(t, f), operateToken)
	id := firstLetter(t, p, "/dead")
	page := html.UnescapeString(p.page("/dead/" + id))
	require.Equal(t, 1, strings.Count(page, "no way to pay"), page)
	require.Contains(t, page, "TypeError: no way to pay XXX")
	require.Contains(t, page, "{\n  \"currency\": \"XXX\",\n  \"lines\": [\n    1,")
	require.Contains(t, page, "at ", "the stack has its frames")

	from := "/dead/" + id + "/edit"
	require.Contains(t, html.UnescapeString(p.page(from)), "{\n  \"currency\": \"XXX\",")
	changed := p.form(from, url.Values{"body": {"{\n  \"currency\": \"EUR\",\n  \"lines\": [1, {\"a\": \"b\"}]\n}"},
		"headers": {"X-Order: 2"}, "step": {"replay"}})
	code, body, _ := p.send(from, changed)
	require.Equal(t, http.StatusOK, code, "what nobody has seen is not done")
	require.Contains(t, html.UnescapeString(body), "-  \"currency\": \"XXX\",")
	require.Contains(t, html.UnescapeString(body), "+  \"currency\": \"EUR\",")
	require.NotContains(t, html.UnescapeString(body), "-  \"lines\"", "white space is no change")
	changed.Set("seen", seenField.FindStringSubmatch(body)[1])
	code, body, job := p.send(from, changed)
	require.Equal(t, http.StatusSeeOther, code, body)
	require.Regexp(t, `^/jobs/.+`, job)
	require.Eventually(t, func() bool { return strings.Contains(p.page(job), "1 succeeded") }, patience,
		10*time.Millisecond)
	require.Contains(t, p.page("/dead"), "There are no dead letters")
}

// A body that was JSON in one line is stored so again, whatever the lines of the form. Deep JSON stays as it is.
func TestBodiesKeepTheirForm(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	deployed(t, f, "bad", `export default { task() { throw new Error("no"); } }`)
	require.Contains(t, f.Pinwheel("send", "task", "acme/bad", "--data", `{"a":1,"b":[1,2]}`).Err, "exception")
	p := newPerson(t, startConsole(t, f), operateToken)
	id := firstLetter(t, p, "/dead")
	from := "/dead/" + id + "/edit"
	changed := p.form(from, url.Values{"body": {"{\n \"a\": 2,\n \"b\": [1, 2]}"}, "step": {"save"}})
	_, body, _ := p.send(from, changed)
	changed.Set("seen", seenField.FindStringSubmatch(body)[1])
	_, _, to := p.send(from, changed)
	require.Regexp(t, `^/dead/\d+$`, to)
	require.Contains(t, f.Pinwheel("dead", "show", strings.TrimPrefix(to, "/dead/"), "--json").Out,
		`"body":"{\"a\":2,\"b\":[1,2]}"`)

	deep := strings.Repeat("[", 2000) + strings.Repeat("]", 2000)
	f.Pinwheel("send", "task", "acme/bad", "--data", deep, "--id", "deep")
	require.Eventually(t, func() bool { return strings.Contains(p.page("/dead?text=deep"), "/dead/") }, patience,
		10*time.Millisecond)
	require.Contains(t, p.page("/dead/"+firstLetter(t, p, "/dead?text=deep")), deep)
}

// A replay says what became of the events: that they were sent again is no success.
func TestReplaySaysWhatDiedAgain(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	deployed(t, f, "bad", `export default { task() { throw new Error("still no"); } }`)
	for range 3 {
		require.Contains(t, f.Pinwheel("send", "task", "acme/bad", "--data", `{}`).Err, "exception")
	}
	p := newPerson(t, startConsole(t, f), operateToken)
	require.Eventually(t, func() bool { return strings.Count(p.page("/dead"), `name="ids"`) == 3 }, patience,
		10*time.Millisecond)
	job := p.does("/dead/replay?all=yes", "/dead/replay", url.Values{"all": {"yes"}})
	require.Eventually(t, func() bool { return strings.Contains(p.page(job), "3 died again") }, patience,
		10*time.Millisecond)
	page := p.page(job)
	require.Contains(t, page, "3 sent again")
	require.NotContains(t, page, "3 done")
	require.Regexp(t, `<a href="/dead/\d+">Dead letter \d+</a>`, page)
	require.NotContains(t, page, "data-live", "nothing changes any more")
	require.Contains(t, p.page("/dead"), "3 sent again")
	require.Contains(t, <-p.follow("/live"+strings.Replace(job, "/jobs/", "/job/", 1)), "3 died again")
	dry := p.does("/dead/replay?all=yes", "/dead/replay", url.Values{"all": {"yes"}, "dryRun": {"yes"}})
	require.Eventually(t, func() bool { return strings.Contains(p.page(dry), "3 would be sent again") }, patience,
		10*time.Millisecond)
}

// The page of an event that waits does not say that it has ended.
func TestEventThatWaits(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	deployed(t, f, "w", `export default { task() {} }`)
	require.Zero(t, f.Pinwheel("send", "task", "acme/w", "--after", "24h", "--id", "later", "--no-wait").Code)
	p := newPerson(t, startConsole(t, f), operateToken)
	at := "/event?owner=acme&worker=w&id="
	require.Eventually(t, func() bool { return strings.Contains(p.page(at+"later"), "It waits") }, patience,
		10*time.Millisecond)
	page := p.page(at + "later")
	require.Contains(t, page, "Its next attempt has not begun.")
	require.NotContains(t, page, "succeeded")
	require.Contains(t, p.page(at+"other"), "has succeeded")
}

// Lists have pages, orders and what workers do.
func TestListsHavePagesOrdersAndTraffic(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	for _, name := range []string{"a-first", "busy", "c-last"} {
		deployed(t, f, name, `export default { task() {} }`)
	}
	p := newPerson(t, startConsole(t, f), viewToken)
	workers := regexp.MustCompile(`<tr><td><a class="name" href="/workers/acme/([^"]+)"`)
	listed := func(path string) (names []string) {
		for _, m := range workers.FindAllStringSubmatch(p.page(path), -1) {
			names = append(names, m[1])
		}
		return names
	}
	require.Eventually(t, func() bool { return len(listed("/workers")) == 3 }, patience, 10*time.Millisecond)
	require.Equal(t, []string{"a-first", "busy", "c-last"}, listed("/workers"))
	require.Equal(t, []string{"c-last", "busy", "a-first"}, listed("/workers?sort=deployed"))
	row := regexp.MustCompile(`(?s)busy</span></a></td>\s*<td class="n">([1-9]|0\.[1-9])`)
	require.Eventually(t, func() bool {
		for range 5 {
			require.Zero(t, f.Pinwheel("send", "task", "acme/busy").Code)
		}
		names := listed("/workers?sort=traffic")
		return len(names) > 0 && names[0] == "busy" && row.MatchString(p.page("/workers"))
	}, patience, 10*time.Millisecond, "the busiest is the first, with a rate")
	require.Empty(t, listed("/workers?sort=traffic&match=c-last"), "it has not run")
	require.Contains(t, p.page("/workers?sort=traffic"), `aria-sort="descending"`)
	require.Contains(t, p.page("/owners?sort=workers"), "/owners/acme")
	require.Empty(t, listed("/workers?page=2"))
}

// While events run, no part of Flow says that there are none, however short they are.
func TestOwnersOfShortEvents(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	deployed(t, f, "w", `export default { task() {} }`)
	p := newPerson(t, startConsole(t, f), viewToken)
	require.Contains(t, p.page("/"), "at this moment", "one look says nothing of rates")
	row := regexp.MustCompile(`<span>acme</span></a></td><td class="n">([1-9]|0\.[1-9])`)
	parts := p.follow("/live/flow")
	require.Eventually(t, func() bool {
		require.Zero(t, f.Pinwheel("send", "task", "acme/w").Code)
		select {
		case part := <-parts:
			return row.MatchString(part)
		default:
			return false
		}
	}, patience, 10*time.Millisecond)
}

// A line has axes, the time that it shows, and its values for who points at it.
func TestLinesSayWhatTheyShow(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	p := newPerson(t, startConsole(t, f), viewToken)
	parts := p.follow("/live/flow")
	<-parts
	<-parts
	part := <-parts
	require.Equal(t, 5, strings.Count(part, `<figure class="spark" data-values="`), part)
	for _, want := range []string{`data-values="0/s|0/s"`, `data-every="2"`, `−3 min`, `<span>now</span>`,
		`0 – 0/s`, `<output>`} {
		require.Contains(t, part, want)
	}
}

// Background threads have nothing to do for most of the time: the page says what they are for.
func TestBackgroundThreadsAreExplained(t *testing.T) {
	t.Parallel()
	page := newPerson(t, startConsole(t, startFleet(t)), viewToken).page("/isolates")
	require.Contains(t, page, `<span class="badge">background</span>`)
	require.Contains(t, page, "events of owners that take more than their share")
}

// The doctor sends to a page where one does what is to be done. The audit says who did what to what.
func TestDoctorAndAuditSpeakToPeople(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	deployed(t, f, "bad", `export default { task() { throw new Error("no"); } }`)
	require.Contains(t, f.Pinwheel("send", "task", "acme/bad", "--data", `1`).Err, "exception")
	p := newPerson(t, startConsole(t, f, func(c *console.Config) {
		c.Examine = func(context.Context) []doctor.Line {
			return []doctor.Line{{Level: doctor.Warn, Check: "dead", Text: "3 dead letters", Do: "pinwheel dead ls"},
				{Level: doctor.Warn, Check: "parked", Text: "2 wait", Do: "pinwheel owners set OWNER raises it"},
				{Level: doctor.Bad, Check: "disk", Text: "it is full", Do: "make room"}}
		}
	}), operateToken)
	page := p.page("/doctor")
	require.NotContains(t, page, "pinwheel ")
	for _, want := range []string{`<a href="/dead">`, `<a href="/owners?sort=traffic">`, "make room"} {
		require.Regexp(t, `<p class="do">[^\n]*`+regexp.QuoteMeta(want), page)
	}

	p.does("/workers/acme/bad/reset", "/workers/acme/bad/reset", url.Values{})
	p.does("/owners/acme", "/owners/acme", url.Values{"policy": {`{"weight": 3}`}})
	page = p.page("/audit")
	require.Regexp(t, `(?s)<b>“Ada”</b> reset\s+<a href="/workers/acme/bad">acme/bad</a>`, page)
	require.Regexp(t, `(?s)<b>“Ada”</b> set the policy of\s+<a href="/owners/acme">acme</a>`, page)
	require.Regexp(t, `(?s)deployed\s+<a href="/workers/acme/bad">`, page)
	require.Contains(t, page, "<dt>policy</dt>")
	require.NotRegexp(t, `<summary>[^\n]*\{`, page, "JSON is among the details only")
}
