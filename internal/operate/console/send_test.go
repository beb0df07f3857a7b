package console_test

import (
	"fmt"
	"html"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// echoes answers with what it was sent, and says so.
const echoes = `export default {
	async fetch(request) { const body = await request.text(); console.log("said", body); console.warn("twice");
		return new Response(request.method + " " + new URL(request.url).pathname + " " + body, { status: 201,
			headers: { "x-got": request.headers.get("x-own"), "x-evil": "<script>hurt()</script>" } }); },
	task(event) { console.log(event.payload); if (event.payload.fail) throw new TypeError("<script>hurt()</script>"); return event.payload; },
	scheduled(event) { return [event.cron, event.scheduledTime]; },
}`

// A person sends a test event of each kind, and sees its reply, its lines and how its run ended, also without a script.
func TestTestEventsAreSent(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	deployed(t, f, "w", echoes)
	p := newPerson(t, startConsole(t, f), operateToken)
	const form = "/workers/acme/w/send"
	require.Contains(t, p.page("/workers/acme/w"), `href="/workers/acme/w/send"`)
	require.Contains(t, p.page(form), `value="fetch" checked`)
	to := p.does(form, form, url.Values{"kind": {"fetch"}, "method": {"PUT"}, "path": {"/a/b?c"},
		"headers": {"X-Own: yes\r\n"}, "body": {"<b>hi</b>"}, "cron": {"of another kind"}})
	require.Regexp(t, `^/sent/test-[a-z0-9]{26}$`, to)
	page := p.page(to)
	for _, want := range []string{"PUT /a/b &lt;b&gt;hi&lt;/b&gt;", "<dd>201</dd>", "said &lt;b&gt;hi", "twice",
		"fetch 201",
		">ok</span>", "&lt;script&gt;hurt()",
		`data-copy="` + strings.TrimPrefix(to, "/sent/") + `"`,
		"x-got"} {
		require.Contains(t, page, want)
	}
	require.NotContains(t, page, "data-live", "it is over")
	require.NotContains(t, page, "<script>hurt")
	require.NotContains(t, page, "<b>hi")
	parts := p.follow("/live" + to)
	require.Contains(t, <-parts, "PUT /a/b")

	to = p.does(form, form, url.Values{"kind": {"task"}, "body": {`{"n": [1, 2]}`}, "method": {"PUT"}})
	require.Regexp(t, `(?s)&#34;data&#34;: \{\s+&#34;n&#34;`, p.page(to), "JSON in lines")
	to = p.does(form, form, url.Values{"kind": {"task"}, "body": {`{"fail": true}`}})
	page = p.page(to)
	require.Contains(t, page, `<span class="badge bad">exception</span>`)
	require.NotContains(t, page, "<script>hurt")
	to = p.does(form, form, url.Values{"kind": {"scheduled"}, "cron": {"0 3 * * *"}, "time": {"2026-01-02T03:00"}})
	require.Contains(t, html.UnescapeString(p.page(to)), "1767322800000")
	require.Contains(t, p.page("/audit?what=events.send"), "4 changes")
}

// What is refused stays in the form. Viewers send nothing, and neither does a form of another session.
func TestTestEventsAreRefused(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	deployed(t, f, "w", echoes)
	base := startConsole(t, f)
	p, viewer := newPerson(t, base, operateToken), newPerson(t, base, viewToken)
	const form = "/workers/acme/w/send"
	csrf := csrfField.FindStringSubmatch(p.page(form))[1]
	for name, c := range map[string]struct {
		form url.Values
		code int
		says string
	}{
		"a header of the fleet": {url.Values{"headers": {"Reply-To: x"}}, 400, `headers have "Reply-To": only the fleet sets it`},
		"one without a value":   {url.Values{"headers": {"no colon"}}, 400, "each line is Name: value"},
		"no JSON":               {url.Values{"contentType": {"application/json"}, "body": {"{<script>"}}, 400, "JSON"},
		"too long":              {url.Values{"body": {strings.Repeat("x", 262145)}}, 400, "body has 262145 bytes"},
		"no kind":               {url.Values{"kind": {"<script>"}}, 400, "kind"},
		"no time":               {url.Values{"kind": {"scheduled"}, "time": {"noon"}}, 400, `time is "noon"`},
	} {
		c.form.Set("csrf", csrf)
		if !c.form.Has("kind") {
			c.form.Set("kind", "task")
		}
		c.form.Set("cron", "kept <script>")
		code, body, _ := p.send(form, c.form)
		require.Equal(t, c.code, code, name)
		require.Contains(t, html.UnescapeString(body), c.says, name)
		require.Contains(t, body, "kept &lt;script&gt;", name)
		require.NotContains(t, body, "<script>\"", name)
	}
	code, body, _ := p.send(form, url.Values{"kind": {"task"}, "csrf": {"another"}})
	require.Equal(t, 403, code, body)
	code, _ = viewer.get(form)
	require.Equal(t, 403, code)
	code, _, _ = viewer.send(form, url.Values{"kind": {"task"}, "csrf": {csrf}})
	require.Equal(t, 403, code)
	require.NotContains(t, viewer.page("/workers/acme/w"), form)
	code, body = p.get("/sent/test-none")
	require.Equal(t, 404, code)
	require.Contains(t, body, "this console has not sent such an event")
	require.Contains(t, p.page("/audit?what=events.send"), "No such change")
}

// A run that goes on shows its lines while it runs, and its page ends to change with it. So many at once are enough.
func TestTestEventsComeLive(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	deployed(t, f, "w", `const gate = Promise.withResolvers();
		export default { task(event) { if (event.payload === "go") { gate.resolve(); return "gone"; } console.log("begun"); return gate.promise; } }`,
		`"mode": "persistent"`)
	p := newPerson(t, startConsole(t, f), operateToken)
	const form = "/workers/acme/w/send"
	wait := url.Values{"kind": {"task"}, "body": {`"wait"`}}
	to := p.does(form, form, wait)
	parts := p.follow("/live" + to)
	for part := range parts {
		if strings.Contains(part, "begun") {
			break
		}
	}
	require.Contains(t, p.page(to), fmt.Sprintf(`data-live="/live%s"`, to))
	require.Contains(t, p.page(to), "Look again")
	p.does(form, form, url.Values{"kind": {"task"}, "body": {`"go"`}})
	over := false
	for part := range parts {
		if over = strings.Contains(part, `>ok<`) && strings.Contains(part, "task"); over {
			break
		}
	}
	require.True(t, over)
	require.NotContains(t, p.page(to), "data-live")
}
