package console_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// paths are those of all pages that need nothing in the fleet.
var paths = []string{"/", "/workers", "/dead", "/schedules",
	"/runs", "/usage", "/usage?by=day", "/owners", "/isolates", "/cells", "/doctor", "/audit",
	"/dead/replay?all=yes", "/dead/purge?all=yes", "/owners/acme"}

func TestPagesOfAnEmptyFleet(t *testing.T) {
	t.Parallel()
	p := newPerson(t, startConsole(t, startFleet(t)), viewToken)
	for _, path := range paths {
		require.Contains(t, p.page(path), "<h1>", path)
	}
	require.Contains(t, p.page("/workers"), "pinwheel deploy")
	require.Contains(t, p.page("/dead"), "There are no dead letters")
	for path, want := range map[string]int{
		"/nothing": 404, "/dead/17": 404, "/dead/x": 404, "/workers/acme/none": 404, "/workers/a.b/c": 400,
		"/dead?reason=bad": 400, "/dead?before=x": 400, "/dead?match=(": 400, "/jobs/x": 400, "/dead/replay": 400,
		"/dead/purge?ids=": 400, "/event": 400,
		"/owners/a.b": 400, "/live/tail": 400, "/live/tail?owner=acme&level=x": 200, "/workers?owner=%2A": 400,
		"/assets/none.js": 404,
	} {
		code, body := p.get(path)
		require.Equal(t, want, code, "%s: %s", path, body)
	}
}

// What owners and publishers write is text, wherever it is shown.
func TestTextsOfOthersStayText(t *testing.T) {
	t.Parallel()
	const evil = `"'></pre></textarea><script>hurt()</script><img src=x onerror=hurt()>`
	f := startFleet(t)
	deployed(t, f, "bad", fmt.Sprintf(`export default { task() { console.log(%q); throw new Error(%q); } }`, evil, evil))
	r := f.Pinwheel("send", "task", "acme/bad", "--data", evil, "--header", "X-Evil="+evil, "--id", "<b>id</b>")
	require.Contains(t, r.Err, "exception")
	p := newPerson(t, startConsole(t, f), operateToken)
	id := firstLetter(t, p, "/dead")
	pages := append(paths, "/dead/"+id, "/dead/"+id+"/edit", "/workers/acme/bad", "/event?owner=acme&worker=bad&id="+
		url.QueryEscape("<b>id</b>"),
		"/dead?text="+url.QueryEscape(evil), "/dead?match="+url.QueryEscape(regexp.QuoteMeta(evil)),
		"/workers?match="+url.QueryEscape(evil), "/dead/replay?text="+url.QueryEscape(evil),
		"/?owner=acme&grep="+url.QueryEscape(regexp.QuoteMeta(evil)))
	for _, path := range pages {
		body := p.page(path)
		for _, raw := range []string{"<script>hurt", "<img src=x", "<b>id", "</pre></textarea>"} {
			require.NotContains(t, body, raw, path)
		}
	}
	require.Contains(t, p.page("/dead/"+id), "&lt;script&gt;hurt()&lt;/script&gt;")
	code, body := p.get("/nothing/" + url.PathEscape(evil))
	require.Equal(t, 404, code)
	require.NotContains(t, body, "<script>hurt")

	// In lines that come live, too.
	lines := p.follow("/live/tail?owner=acme")
	require.Eventually(t, func() bool {
		f.Pinwheel("send", "task", "acme/bad")
		select {
		case line := <-lines:
			return strings.Contains(line, "hurt")
		default:
			return false
		}
	}, patience, 10*time.Millisecond)
	for range 2 {
		line := <-lines
		require.NotContains(t, line, "<script>")
		require.NotContains(t, line, "<img")
	}
}

// firstLetter is the number of the first letter in a list, when there is one.
func firstLetter(t *testing.T, p *person, list string) (id string) {
	t.Helper()
	link := regexp.MustCompile(`href="/dead/(\d+)"`)
	require.Eventually(t, func() bool {
		if m := link.FindStringSubmatch(p.page(list)); m != nil {
			id = m[1]
		}
		return id != ""
	}, patience, 10*time.Millisecond)
	return id
}

// follow opens a stream, and returns the data of its events.
func (p *person) follow(path string) <-chan string {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, p.base+path, nil)
	require.NoError(p.t, err)
	a, err := p.http.Do(r)
	require.NoError(p.t, err)
	require.Equal(p.t, http.StatusOK, a.StatusCode)
	require.Equal(p.t, "text/event-stream", a.Header.Get("Content-Type"))
	data := make(chan string, 1000)
	go func() {
		defer close(data)
		defer func() { _ = a.Body.Close() }()
		lines := bufio.NewScanner(a.Body)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var html any
			if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok && json.Unmarshal([]byte(text), &html) == nil {
				data <- fmt.Sprint(html)
			}
		}
	}()
	return data
}

// The page Flow changes while events run.
func TestFlowIsLive(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	deployed(t, f, "echo", `export default { task: (event) => event.payload }`)
	p := newPerson(t, startConsole(t, f), viewToken)
	require.Contains(t, p.page("/"), `data-live="/live/flow"`)
	parts := p.follow("/live/flow")
	lines := regexp.MustCompile(`<polyline`)
	for n := range 3 {
		part := <-parts
		require.Contains(t, part, "badge ok")
		if n == 2 { // a line has two points
			require.Len(t, lines.FindAllString(part, -1), 5, part)
		}
	}
}

// The page of a worker has the figures of that worker, and they change while events run.
func TestFiguresOfAWorkerAreLive(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	deployed(t, f, "w", `export default { task(event) { if (event.payload === "bad") { event.noRetry(); throw new Error("bad"); } } }`)
	deployed(t, f, "other", `export default { task() {} }`)
	require.Zero(t, f.Pinwheel("send", "task", "acme/w", "--data", "1").Code)
	require.Equal(t, 1, f.Pinwheel("send", "task", "acme/w", "--data", `"bad"`).Code)
	p := newPerson(t, startConsole(t, f), viewToken)
	page := p.page("/workers/acme/w")
	require.Contains(t, page, `data-live="/live/workers/acme/w"`)
	for _, want := range []string{`<p class="hint">2 in all</p>`, `<p class="hint">1 in all</p>`,
		`<p class="figure">-<small>/s</small></p>`, `last event <time`, "since the process that has it took it up"} {
		require.Contains(t, page, want)
	}
	require.Contains(t, p.page("/workers/acme/other"), "no event yet")
	parts := p.follow("/live/workers/acme/w")
	require.Contains(t, <-parts, "2 in all")
	require.Zero(t, f.Pinwheel("send", "task", "acme/w", "--data", "1").Code)
	require.Eventually(t, func() bool {
		return regexp.MustCompile(`(?s)[1-9]\S*<small>/s.*3 in all`).
			MatchString(<-parts)
	}, patience, time.Millisecond, "a rate")
	require.Contains(t, <-p.follow("/live/workers/acme/none"), "No process that answers has it.")
}

// A browser that reads nothing, and one that has left half of its connection, are gone after a while. They hold neither
// a place nor a tail.
func TestBrowsersThatAreGone(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	deployed(t, f, "loud", `export default { task() { for (let i = 0; i < 100; i++) console.log("x".repeat(4000)); } }`)
	c := serveConsole(t, f)
	c.SetWriteTime(100 * time.Millisecond)
	p := newPerson(t, "http://"+c.Addr(), viewToken)
	at, err := url.Parse(p.base)
	require.NoError(t, err)
	cookie := p.http.Jar.Cookies(at)[0]
	// The system keeps megabytes for a connection with large segments, which a tail fills in ten seconds.
	narrow := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) (err error) {
		failed := raw.Control(func(fd uintptr) {
			err = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_MAXSEG,
				536)
		})
		return errors.Join(failed, err)
	}}
	opened := func(path string) *net.TCPConn {
		conn, err := narrow.Dial("tcp", at.Host)
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nCookie: %s=%s\r\n\r\n", path, at.Host, cookie.Name, cookie.Value)
		require.NoError(t, err)
		head := make([]byte, len("HTTP/1.1 200 OK"))
		_, err = io.ReadFull(conn, head)
		require.NoError(t, err)
		require.Equal(t, "HTTP/1.1 200 OK", string(head))
		return conn.(*net.TCPConn)
	}
	require.NoError(t, opened("/live/flow").CloseWrite())
	require.Eventually(t, func() bool { return c.Streams() == 0 }, patience, time.Millisecond)

	opened("/live/tail?owner=acme")
	require.Equal(t, 1, c.Streams())
	require.Eventually(t, func() bool {
		f.Pinwheel("send", "task", "acme/loud")
		return c.Streams() == 0
	}, patience, 10*time.Millisecond)
}

// Streams are bounded; pages are not kept from those who look.
func TestStreamsAreBounded(t *testing.T) {
	t.Parallel()
	p := newPerson(t, startConsole(t, startFleet(t)), viewToken)
	for range 64 {
		<-p.follow("/live/flow")
	}
	code, body := p.get("/live/flow")
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Contains(t, body, "64 pages follow the fleet already")
	require.Contains(t, p.page("/"), "<h1>")
}

func TestWorkerIsPromotedAndRolledBack(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	for n := range 2 {
		deployed(t, f, "w", fmt.Sprintf(`export default { task: () => %d }`, n))
	}
	p := newPerson(t, startConsole(t, f), operateToken)
	page := p.page("/workers/acme/w")
	require.Contains(t, page, "100 % of events")
	require.Equal(t, "/workers/acme/w", p.does("/workers/acme/w", "/workers/acme/w/promote",
		url.Values{"version": {"1"}, "percent": {"25"}}))
	page = p.page("/workers/acme/w")
	require.Contains(t, page, "acme/w is promoted: deployment 3.")
	require.Contains(t, page, "25 % of events")
	require.NotContains(t, p.page("/workers/acme/w"), "is promoted: deployment", "a notice is shown once")
	p.does("/workers/acme/w", "/workers/acme/w/rollback", url.Values{"message": {"too slow"}})
	page = p.page("/workers/acme/w")
	require.Contains(t, page, "too slow")
	require.Contains(t, page, "Ada (console)")
	require.Contains(t, p.page("/audit"), "console: Ada")
	p.does("/workers/acme/w", "/workers/acme/w/reset", url.Values{})
	require.Contains(t, p.page("/workers/acme/w"), "acme/w is reset in all processes (1).")
	require.Contains(t, p.page("/audit"), "workers.reset")
	for _, percent := range []string{"0", "-1", "100.1", "NaN", "Inf", "x"} {
		code, body, _ := p.send("/workers/acme/w/promote", url.Values{"version": {"1"}, "percent": {percent},
			"csrf": {csrfField.FindStringSubmatch(page)[1]}})
		require.Equal(t, 400, code)
		require.Contains(t, body, "it is above 0, to 100")
	}
}

func TestLetterIsEditedAndReplayed(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	deployed(t, f, "pay", `export default { task(event) { if (event.payload.currency !== "EUR") throw new Error("no " + event.payload.currency); } }`)
	require.Contains(t, f.Pinwheel("send", "task", "acme/pay", "--data", `{"currency":"XXX"}`, "--header", "X-Order=1").
		Err, "exception")
	p := newPerson(t, startConsole(t, f), operateToken)
	id := firstLetter(t, p, "/dead?text=xxx")
	require.Contains(t, p.page("/dead?owner=acme&reason=exception&counts=yes"), "1 by worker and reason")
	require.Contains(t, p.page("/dead/"+id), "no XXX")

	from := "/dead/" + id + "/edit"
	changed := url.Values{"body": {`{"currency":"EUR"}`}, "headers": {"X-Order: 2\r\nX-New: a\r\n"},
		"csrf": {csrfField.FindStringSubmatch(p.page(from))[1]}}
	code, body, _ := p.send(from, changed)
	require.Equal(t, http.StatusOK, code)
	for _, want := range []string{"-  &#34;currency&#34;: &#34;XXX&#34;", "&#43;  &#34;currency&#34;: &#34;EUR&#34;",
		"&#43;X-New: a"} {
		require.Contains(t, body, want)
	}
	changed.Set("step", "save")
	changed.Set("seen", seenField.FindStringSubmatch(body)[1])
	other := url.Values{"body": {`{"currency":"USD"}`}, "headers": changed["headers"], "csrf": changed["csrf"],
		"seen": changed["seen"], "step": {"save"}}
	code, body, _ = p.send(from, other)
	require.Equal(t, http.StatusOK, code, "what nobody has seen is shown first")
	require.Contains(t, body, "USD")
	to := p.does(from, from, changed)
	require.NotEqual(t, "/dead/"+id, to)
	page := p.page(to)
	require.Contains(t, page, "EUR")
	require.Contains(t, page, "X-New")
	code, _ = p.get("/dead/" + id)
	require.Equal(t, 404, code)

	job := p.does(to, "/dead/replay", url.Values{"owner": {"acme"}, "text": {"eur"}, "rate": {"50"}, "to": {"pay@1"}})
	require.Regexp(t, `^/jobs/.+`, job)
	require.Eventually(t, func() bool { return strings.Contains(p.page(job), `badge done`) }, patience,
		10*time.Millisecond)
	require.Contains(t, p.page(job), "1 sent again, of at most 1")
	require.Contains(t, p.page("/dead"), "There are no dead letters")
	require.Contains(t, p.page("/audit"), "dead.replay")
}

func TestLettersAreRemoved(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	deployed(t, f, "bad", `export default { task() { throw new Error("no"); } }`)
	require.Contains(t, f.Pinwheel("send", "task", "acme/bad", "--data", `1`).Err, "exception")
	p := newPerson(t, startConsole(t, f), operateToken)
	id := firstLetter(t, p, "/dead")
	require.Contains(t, p.page("/dead/purge?ids="+id), "1 chosen letter")
	for _, dry := range []string{"yes", ""} {
		job := p.does("/dead/purge?ids="+id, "/dead/purge", url.Values{"ids": {id}, "dryRun": {dry}})
		require.Eventually(t, func() bool { return strings.Contains(p.page(job), `badge done`) }, patience,
			10*time.Millisecond)
		code, _ := p.get("/dead/" + id)
		require.Equal(t, map[string]int{"yes": 200, "": 404}[dry], code)
	}
	code, body, _ := p.send("/dead/purge", url.Values{"csrf": {csrfField.FindStringSubmatch(p.page("/dead"))[1]}})
	require.Equal(t, 400, code, "nothing was chosen")
	require.Contains(t, body, "which dead letters?")
}

// A job that takes long is ended by hand. The letters that it has not reached stay.
func TestJobIsCancelled(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	deployed(t, f, "bad", `export default { task(event) { if (!event.payload.good) throw new Error("no"); } }`)
	for range 3 {
		require.Contains(t, f.Pinwheel("send", "task", "acme/bad", "--data", `{}`).Err, "exception")
	}
	p := newPerson(t, startConsole(t, f), operateToken)
	require.Eventually(t, func() bool { return strings.Count(p.page("/dead"), `name="ids"`) == 3 }, patience,
		10*time.Millisecond)
	job := p.does("/dead", "/dead/replay", url.Values{"owner": {"acme"}, "dryRun": {""}, "rate": {"0.001"}})
	require.Contains(t, p.page("/dead"), job, "a list has the jobs of all processes")
	parts := p.follow("/live" + strings.Replace(job, "/jobs/", "/job/", 1))
	require.Contains(t, <-parts, "badge running")
	require.Equal(t, job, p.does(job, job+"/cancel", url.Values{}))
	for part := range parts { // the stream ends with the job
		if strings.Contains(part, "badge cancelled") {
			break
		}
	}
	require.Contains(t, p.page(job), "badge cancelled")
	require.NotContains(t, p.page(job), "data-live")
	viewer := newPerson(t, p.base, viewToken)
	require.NotContains(t, viewer.page(job), "/cancel")
}

func TestSchedulesAndWaitingEvents(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	deployed(t, f, "tick", `export default { scheduled() {}, task() {} }`, `"schedules": [{"cron": "0 3 * * *"}]`)
	r := f.Pinwheel("send", "task", "acme/tick", "--after", "24h", "--id", "later", "--no-wait")
	require.Zero(t, r.Code, r.Err)
	p := newPerson(t, startConsole(t, f), operateToken)
	require.Contains(t, p.page("/schedules"), "0 3 * * *")
	require.Contains(t, p.page("/workers/acme/tick"), "0 3 * * *")
	name := url.Values{"worker": {"acme/tick"}, "name": {"1"}, "back": {"/schedules"}}
	require.Equal(t, "/schedules", p.does("/schedules", "/schedules/pause", name))
	require.Contains(t, p.page("/schedules"), "paused")
	p.does("/schedules", "/schedules/resume", name)
	require.NotContains(t, strings.ReplaceAll(p.page("/schedules"), "is paused", ""), "badge warn")
	require.Eventually(t, func() bool { return strings.Contains(p.page("/schedules"), "later") }, patience,
		10*time.Millisecond)
	require.Contains(t, p.page("/event?owner=acme&worker=tick&id=later"), "in 23 h")
	p.does("/schedules", "/schedules/cancel", url.Values{"worker": {"acme/tick"}, "id": {"later"},
		"back": {"//evil.example"}})
	require.Contains(t, p.page("/schedules"), "1 waiting events with the id later are cancelled.")
}

func TestPolicyIsSet(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	p := newPerson(t, startConsole(t, f), operateToken)
	set := func(text string) { p.does("/owners/acme", "/owners/acme", url.Values{"policy": {text}}) }
	set(`{"weight": 3, "maxRunning": 7, "hosts": ["a.example"]}`)
	// The list comes from a process that hears of changes later than the store has them.
	listed := func() bool { return strings.Contains(p.page("/owners"), `title="weight `) }
	require.Eventually(t, listed, patience, 10*time.Millisecond)
	set(`{"weight": 2}`) // what is left out is as configured
	page := p.page("/owners/acme")
	require.Contains(t, page, "&#34;weight&#34;: 2")
	require.NotContains(t, page, "maxRunning&#34;: 7")
	require.NotContains(t, page, "a.example")
	for text, want := range map[string]string{"[1]": "it is a JSON object", `{"weight": -1}`: "weight",
		`{"colour": 1}`: "colour"} {
		code, body, _ := p.send("/owners/acme",
			url.Values{"policy": {text}, "seen": {html.UnescapeString(seenField.FindStringSubmatch(page)[1])},
				"csrf": {csrfField.FindStringSubmatch(page)[1]}})
		require.Equal(t, 400, code)
		require.Contains(t, body, want)
	}
	code, body, _ := p.send("/owners/acme", url.Values{"policy": {`{}`}, "seen": {`{}`},
		"csrf": {csrfField.FindStringSubmatch(page)[1]}})
	require.Equal(t, 409, code)
	require.Contains(t, body, "somebody has changed the policy")
	p.does("/owners/acme", "/owners/acme/remove", url.Values{})
	require.Eventually(t, func() bool { return !listed() }, patience, 10*time.Millisecond)
}

// An error of the fleet is a page that says what is wrong.
func TestFleetThatIsAway(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	away := *f
	away.Config.Prefix = "other"
	p := newPerson(t, startConsole(t, &away), viewToken)
	for path, want := range map[string]int{"/": 503, "/dead": 503, "/workers": 503, "/isolates": 503, "/cells": 503} {
		code, body := p.get(path)
		require.Equal(t, want, code, path)
		require.Contains(t, body, "no process of", path)
	}
}
