//go:build browser

package browser

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
)

const (
	manyWorkers, manyLetters = 10_000, 100_000
	evil                     = `"'></pre></textarea></script><script>globalThis.hurt = true</script><img src=x onerror="globalThis.hurt = true">`
)

// crowd fills a fleet: 10 000 workers of 100 owners, and 100 000 dead letters, as the fleet itself stores them. The
// workers are copies of the record of one that was deployed.
func crowd(t *testing.T, f *fleettest.Fleet) {
	t.Helper()
	js, err := jetstream.New(f.NC, jetstream.WithPublishAsyncMaxPending(4096))
	require.NoError(t, err)
	kv, err := js.KeyValue(t.Context(), "PINWHEEL_WORKERS")
	require.NoError(t, err)
	one, err := kv.Get(t.Context(), "acme.pay")
	require.NoError(t, err)
	var record map[string]any
	require.NoError(t, json.Unmarshal(one.Value(), &record))
	for n := range manyWorkers {
		record["owner"], record["name"] = fmt.Sprintf("owner%03d", n%100), fmt.Sprintf("worker%04d", n/100)
		text, err := json.Marshal(record)
		require.NoError(t, err)
		_, err = js.PublishAsync(fmt.Sprintf("$KV.PINWHEEL_WORKERS.%s.%s", record["owner"], record["name"]), text,
			jetstream.WithStallWait(patience))
		require.NoError(t, err)
	}
	for n := range manyLetters {
		publishLetter(t, js, n, n%100, fmt.Sprintf(`{"order":%d,"currency":"CHF","lines":[1,2,3]}`, n), "the bank is away")
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-time.After(patience):
		t.Fatal("the letters are not stored")
	}
}

// publishLetter stores a letter of worker pay of an owner, or of acme when that is -1.
func publishLetter(t *testing.T, js jetstream.JetStream, n, owner int, body, message string) {
	t.Helper()
	at := time.Now().Add(-time.Duration(manyLetters+400-n) * time.Second)
	l := &events.DeadLetter{
		Owner: fmt.Sprintf("owner%03d", owner), Worker: fmt.Sprintf("worker%04d", n%7), Kind: "task",
		EventID: fmt.Sprintf("event-%d", n), Failure: *events.NewFailure(events.Reasons[n%3], message,
			"Error: "+message+"\n    at pay.js:3:9"),
		Version: "1-0123456789ab", Node: "host/1", Attempts: 3, FirstAt: at.Add(-time.Minute), At: at,
		Stream: events.StreamEvents, StreamSeq: uint64(n + 1_000_000), Stored: at.Add(-time.Minute),
		History: []events.FailedRun{{At: at.Add(-30 * time.Second), Attempt: 2, Reason: events.ReasonException,
			Message: message, Node: "host/1"}, {At: at, Attempt: 3, Reason: events.ReasonException, Message: message,
			Node: "host/1"}},
		Header: events.Header{"X-Order": {fmt.Sprint(n)}, "traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}},
		Body:   []byte(body),
	}
	if owner < 0 {
		l.Owner, l.Worker = "acme", "pay"
	}
	l.Subject = fmt.Sprintf("pinwheel.events.0.task.%s.%s", l.Owner, l.Worker)
	_, err := js.PublishMsgAsync(&nats.Msg{Subject: events.Subjects("pinwheel").DeadLetter(l, l.Failure.Reason),
		Header: nats.Header(l.Encode()), Data: l.Body}, jetstream.WithStallWait(patience))
	require.NoError(t, err)
}

// startConsole runs `pinwheel console`, and returns the link that it prints.
func startConsole(t *testing.T, f *fleettest.Fleet) *url.URL {
	t.Helper()
	link, _ := runConsole(t, f)
	return link
}

// runConsole does what startConsole does, and returns what ends the console too. The test ends it at the latest.
func runConsole(t *testing.T, f *fleettest.Fleet) (link *url.URL, stop func()) {
	t.Helper()
	cmd := fleettest.Command([]string{"PINWHEEL_NATS_URL=" + f.URL, "PINWHEEL_CONTROL_TOKEN=" + f.Config.ControlToken,
		"PINWHEEL_CONSOLE_TRACE_URL=https://traces.example/{trace}"}, "console", "--addr", "127.0.0.1:0")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	stop = sync.OnceFunc(func() {
		require.NoError(t, cmd.Process.Signal(os.Interrupt))
		require.NoError(t, cmd.Wait())
	})
	t.Cleanup(stop)
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	at := regexp.MustCompile(`http://\S+`).FindString(line)
	require.NotEmpty(t, at, line)
	link, err = url.Parse(at)
	require.NoError(t, err)
	return link, stop
}

// inColours has a tab prefer light or dark.
func inColours(scheme string) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, tab *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, tab, emulation.SetEmulatedMedia,
			emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		return chromedp.Void{}, err
	}
}

// slash presses the key that goes to the first filter of a page. Chromium makes the character of it, unless the page
// has used the key.
func slash(ctx context.Context, tab *chromedp.Target) (chromedp.Void, error) {
	key := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: "/", Code: "Slash", Text: "/",
		WindowsVirtualKeyCode: 191}
	if _, err := cdp.Call(ctx, tab, input.DispatchKeyEvent, key); err != nil {
		return chromedp.Void{}, err
	}
	key.Type, key.Text = input.DispatchKeyEventTypeKeyUp, ""
	_, err := cdp.Call(ctx, tab, input.DispatchKeyEvent, key)
	return chromedp.Void{}, err
}

// visit opens a page, and keeps pictures of it: light, dark, and as wide as a phone.
func visit(t *testing.T, tab context.Context, base, path, name string) {
	t.Helper()
	does(t, tab, chromedp.Navigate(base+path))
	shows(t, tab, `document.querySelector("main h1") !== null`)
	took := gets(t, tab, chromedp.Evaluate[float64](`performance.getEntriesByType("navigation")[0].responseEnd`))
	t.Logf("%-12s %4.0f ms", name, took)
	require.Empty(t, gets(t, tab, chromedp.Evaluate[string](`document.querySelector("[role=alert]")?.textContent ?? ""`)), path)
	shows(t, tab, `globalThis.hurt === undefined`)
	fits(t, tab, 1280, path)
	screen(t, tab, "console-"+name)
	does(t, tab, inColours("dark"))
	screen(t, tab, "console-"+name+"-dark")
	does(t, tab, inColours("light"), chromedp.EmulateViewport(390, 844))
	fits(t, tab, 390, path)
	screen(t, tab, "console-"+name+"-phone")
	does(t, tab, chromedp.EmulateViewport(1280, 860))
}

// fits checks that a page is no wider than the window: the whole page, also what is hidden in its tables.
func fits(t *testing.T, tab context.Context, width int, path string) {
	t.Helper()
	wide := gets(t, tab, chromedp.Evaluate[float64](`document.documentElement.scrollWidth`))
	if wide <= float64(width) {
		return
	}
	which := gets(t, tab, chromedp.Evaluate[[]string](fmt.Sprintf(`[...document.querySelectorAll("body *")].filter((e) =>
		!e.closest(".scroll table") && e.getBoundingClientRect().right > %d).map((e) => e.outerHTML.slice(0, 200))`, width)))
	t.Fatalf("%s is %v wide in a window of %d: %v", path, wide, width, which)
}

func TestConsole(t *testing.T) {
	f := fleettest.Start(t, func(c *config.Config) {
		c.ControlToken, c.DeadLetterBytes, c.MaxBytes = "token-of-the-operators", 1<<30, 1<<30
	})
	pay := func(source string) {
		path := filepath.Join(t.TempDir(), "pay.js")
		require.NoError(t, os.WriteFile(path, []byte(source), 0o600))
		require.NoError(t, os.WriteFile(strings.TrimSuffix(path, ".js")+".pinwheel.json",
			[]byte(`{"schedules": [{"cron": "0 3 * * *"}]}`), 0o600))
		f.Deploy(t, path, "--owner", "acme")
	}
	pay("export default { scheduled() {}, task(event) { throw new Error(`no way to pay ${event.payload.order}`); } }")
	pay("export default { scheduled() {}, task(event) { if (event.payload.currency !== 'CHF') throw new Error('no ' + event.payload.currency); console.log(event.payload.note ?? 'paid'); } }")
	js, err := jetstream.New(f.NC)
	require.NoError(t, err)
	for n := range 12 { // half of them are the oldest letters, and half are new
		if n == 6 {
			<-js.PublishAsyncComplete()
			crowd(t, f)
		}
		publishLetter(t, js, manyLetters+n, -1, fmt.Sprintf(`{"order":"needle-%d","currency":"XXX","note":%s}`, n, quoted(evil)), evil)
	}
	for n := range 200 {
		publishLetter(t, js, manyLetters+100+n, -1, `{"order":"bulk","currency":"CHF"}`, "the bank was away")
	}
	<-js.PublishAsyncComplete()

	link := startConsole(t, f)
	base := "http://" + link.Host
	tab := startBrowser(t)
	does(t, tab, chromedp.EmulateViewport(1280, 860), inColours("light"))
	does(t, tab, chromedp.Navigate(base+"/workers"))
	shows(t, tab, `document.querySelector("input[name=token]") !== null`)
	screen(t, tab, "console-login")
	does(t, tab, chromedp.Navigate(link.String()))
	shows(t, tab, `document.querySelector("main h1")?.textContent === "Flow"`)

	for _, p := range [][2]string{
		{"/?owner=acme", "flow"}, {"/workers", "workers"}, {"/workers?match=worker0042", "workers-found"},
		{"/workers/acme/pay", "worker"}, {"/dead", "dead"}, {"/dead?text=needle-", "dead-found"},
		{"/schedules", "schedules"}, {"/event?owner=acme&worker=pay&id=event-100011", "event"}, {"/owners", "owners"},
		{"/owners/acme", "owner"}, {"/isolates", "isolates"}, {"/doctor", "doctor"}, {"/audit", "audit"},
		{"/dead/100012", "letter-all"}, {"/dead/100012/edit", "edit"}, {"/dead/replay?all=yes", "replay-all"},
		{"/dead/purge?all=yes", "purge"}, {"/workers/acme/pay/rollback", "rollback"},
		{"/workers?sort=deployed&page=3", "workers-page"},
		{"/dead?sort=oldest", "dead-oldest"},
	} {
		visit(t, tab, base, p[0], p[1])
	}
	keys(t, tab, base)
	letters(t, tab, base)
	flow(t, tab, base, f)
	manyTabs(t, tab, base)
	deployments(t, tab, base)
}

func quoted(text string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text)
	return strings.TrimSpace(b.String())
}

const rowCount = `document.querySelectorAll("table[data-rows] tbody tr").length`

// keys goes from page to page without a mouse.
func keys(t *testing.T, tab context.Context, base string) {
	does(t, tab, chromedp.Navigate(base+"/"), chromedp.KeyEvent("gw"))
	shows(t, tab, `location.pathname === "/workers" && `+rowCount+` === 100`)
	does(t, tab, slash, chromedp.KeyEvent("owner042/worker0007\r"))
	shows(t, tab, `location.search === "?match=owner042%2Fworker0007" && `+rowCount+` === 1`)
	does(t, tab, chromedp.KeyEvent("j"))
	shows(t, tab, `document.activeElement.matches("tr[data-here] a[href='/workers/owner042/worker0007']")`)
	does(t, tab, chromedp.KeyEvent("\r"))
	shows(t, tab, `location.pathname === "/workers/owner042/worker0007"`)
	does(t, tab, chromedp.KeyEvent("?"))
	shows(t, tab, `document.querySelector("#help").open`)
	screen(t, tab, "console-help")
	does(t, tab, chromedp.KeyEvent("\x1b"))
	shows(t, tab, `!document.querySelector("#help").open`)
}

// letters finds 12 of 100 000 letters by a text, edits one, and replays those that match onto another version.
func letters(t *testing.T, tab context.Context, base string) {
	does(t, tab, chromedp.Navigate(base+"/dead"), slash, chromedp.KeyEvent("needle-\r"))
	shows(t, tab, rowCount+` === 12`)
	shows(t, tab, `document.querySelectorAll("#counts .bars li").length === 12`)
	shows(t, tab, `document.querySelector("tbody .clip").textContent.includes("<script>") && globalThis.hurt === undefined`)
	does(t, tab, chromedp.Click(`tbody td.n a`))
	shows(t, tab, `document.querySelector("main h1").textContent.startsWith("Dead letter ")`)
	shows(t, tab, `document.querySelector('a[href="https://traces.example/0af7651916cd43dd8448eb211c80319c"]') !== null`)
	screen(t, tab, "console-letter")
	does(t, tab, chromedp.Click(`a[href$="/edit"]`))
	shows(t, tab, `document.querySelector("textarea[name=body]").value.includes("needle-11") && globalThis.hurt === undefined`)
	before := gets(t, tab, chromedp.Evaluate[string](`location.pathname`))
	gets(t, tab, chromedp.Evaluate[bool](`(() => { const f = document.querySelector("textarea[name=body]"); f.value = f.value.replace("XXX", "CHF"); return true; })()`))
	does(t, tab, chromedp.Click(`button[value=check]`))
	shows(t, tab, `document.querySelector(".diff .added")?.textContent.includes("CHF") && document.querySelector(".diff .removed").textContent.includes("XXX")`)
	screen(t, tab, "console-diff")
	does(t, tab, chromedp.Click(`button[value=replay]`))
	shows(t, tab, `document.querySelector("[role=status]")?.textContent.includes("is changed, and is sent again") && location.pathname.startsWith("/jobs/") && location.pathname + "/edit" !== `+quoted(before))
	shows(t, tab, `document.querySelector("#job-progress .outcomes")?.textContent.includes("1 succeeded")`)
	screen(t, tab, "console-job-of-one")

	// All that match, onto version 2, 50 a second. The job goes on by itself; the page shows how far it is.
	does(t, tab, chromedp.Navigate(base+"/dead?owner=acme&text=bulk"), chromedp.Click(`a.button.main`))
	shows(t, tab, `document.querySelector("main h1").textContent === "Replay"`)
	screen(t, tab, "console-replay")
	does(t, tab, chromedp.SetValue(`input[name=rate]`, "50"), chromedp.SetValue(`input[name=to]`, "pay@2"),
		chromedp.Click(`form.stack button.main`))
	shows(t, tab, `location.pathname.startsWith("/jobs/") && +document.querySelector("[data-live]")?.dataset.updates >= 2`)
	screen(t, tab, "console-job")
	shows(t, tab, `document.querySelector("#job-progress .badge.done") !== null`)
	shows(t, tab, `document.querySelector("#job-progress .lead").textContent.includes("200 sent again")`)
	screen(t, tab, "console-job-done")
	does(t, tab, chromedp.Navigate(base+"/dead?owner=acme&text=bulk"))
	shows(t, tab, `document.querySelector(".empty h2").textContent === "No dead letter matches"`)
	does(t, tab, chromedp.Navigate(base+"/audit"))
	shows(t, tab, `document.querySelector("main").textContent.includes("dead.replay")`)
}

// flow follows events and lines while they come.
func flow(t *testing.T, tab context.Context, base string, f *fleettest.Fleet) {
	does(t, tab, chromedp.Navigate(base+"/?owner=acme"))
	for range 4 {
		require.Zero(t, f.Pinwheel("send", "task", "acme/pay", "--data", `{"currency":"CHF","note":`+quoted(evil)+`}`).Code)
	}
	require.Eventually(t, func() bool {
		require.Zero(t, f.Pinwheel("send", "task", "acme/pay", "--data", `{"currency":"CHF","note":`+quoted(evil)+`}`).Code)
		return gets(t, tab, chromedp.Evaluate[bool](`document.querySelectorAll(".tail li.log").length > 2`))
	}, patience, 10*time.Millisecond)
	shows(t, tab, `document.querySelector(".tail li.log .text").textContent.includes("<script>") && globalThis.hurt === undefined`)
	shows(t, tab, `document.querySelectorAll(".spark").length === 5`)
	hovers(t, tab)
	pausesLines(t, tab, f)
	screen(t, tab, "console-flow-live")
	does(t, tab, inColours("dark"))
	screen(t, tab, "console-flow-live-dark")
	does(t, tab, inColours("light"))
}

// pausesLines has the lines wait while a person reads, and clears them.
func pausesLines(t *testing.T, tab context.Context, f *fleettest.Fleet) {
	t.Helper()
	const lines = `document.querySelectorAll(".tail li").length`
	does(t, tab, chromedp.Click(`[data-tail-pause]`))
	before := gets(t, tab, chromedp.Evaluate[float64](lines))
	require.Eventually(t, func() bool {
		require.Zero(t, f.Pinwheel("send", "task", "acme/pay", "--data", `{"currency":"CHF"}`).Code)
		return gets(t, tab, chromedp.Evaluate[bool](`/^Go on \(\d+ new\)$/.test(document.querySelector("[data-tail-pause]").textContent)`))
	}, patience, 10*time.Millisecond)
	require.InDelta(t, before, gets(t, tab, chromedp.Evaluate[float64](lines)), 0, "nothing moves below the reader")
	does(t, tab, chromedp.Click(`[data-tail-pause]`))
	shows(t, tab, fmt.Sprintf(`%s > %f && document.querySelector("[data-tail-pause]").textContent === "Pause"`, lines, before))
	does(t, tab, chromedp.Click(`[data-tail-clear]`))
	shows(t, tab, fmt.Sprintf(`%s < %f`, lines, before))
}

// hovers points at the right end of a line: its value shows, and stays when the line is replaced.
func hovers(t *testing.T, tab context.Context) {
	const says = `document.querySelector(".spark output")?.textContent.match(/\/s, (now|\d+ s ago)$/) !== null`
	gets(t, tab, chromedp.Evaluate[bool](`(() => { const b = document.querySelector(".spark .plot").getBoundingClientRect();
		return document.dispatchEvent(new PointerEvent("pointermove", { clientX: b.right - 1, clientY: b.top + 8 })); })()`))
	shows(t, tab, says)
	const updates = `+document.querySelector("[data-live]").dataset.updates`
	before := gets(t, tab, chromedp.Evaluate[float64](updates))
	shows(t, tab, fmt.Sprintf(`%s > %f && %s`, updates, before, says))
}

// manyTabs opens more pages that follow the fleet than a browser has connections to the console. One that nobody sees
// follows nothing, so the last one works. Chromium without windows shows all tabs, so the test says which are hidden.
func manyTabs(t *testing.T, first context.Context, base string) {
	hide := func(tab context.Context, hidden bool) {
		gets(t, tab,
			chromedp.Evaluate[bool](fmt.Sprintf(`Object.defineProperty(document, "hidden", { value: %t, configurable: true }),
			document.dispatchEvent(new Event("visibilitychange"))`, hidden)))
	}
	const updates = `+document.querySelector("[data-live]")?.dataset.updates`
	does(t, first, chromedp.Navigate(base+"/"))
	tab := first
	for range 8 {
		hide(tab, true)
		tab = newTab(t, tab)
		does(t, tab, chromedp.Navigate(base+"/"))
		shows(t, tab, updates+` >= 1`)
	}
	before := gets(t, first, chromedp.Evaluate[float64](updates+" || 0"))
	hide(first, false)
	shows(t, first, fmt.Sprintf(`%s > %f`, updates, before))
}

// deployments gives a version a share, and goes back.
func deployments(t *testing.T, tab context.Context, base string) {
	does(t, tab, chromedp.Navigate(base+"/workers/acme/pay"), chromedp.SetValue(`form[action$="/promote"] input[name=percent]`,
		"25"), chromedp.Click(`form[action$="/promote"] button`))
	shows(t, tab, `location.pathname.endsWith("/promote") && document.querySelector("input[name=percent]").value === "25"`)
	screen(t, tab, "console-promote")
	does(t, tab, chromedp.Click(`form.question button`))
	shows(t, tab, `document.querySelector("[role=status]")?.textContent.includes("is promoted")`)
	shows(t, tab, `document.querySelector("main").textContent.includes("25 % of events")`)
	screen(t, tab, "console-split")
	does(t, tab, chromedp.Click(`a[href$="/rollback"]`))
	shows(t, tab, `document.querySelector("main h1").textContent === "Roll back?"`)
	does(t, tab, chromedp.Click(`form.question button`))
	shows(t, tab, `document.querySelector("[role=status]")?.textContent.includes("is rolled back")`)
}
