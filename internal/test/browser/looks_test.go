//go:build browser

package browser

import (
	"context"
	_ "embed"
	"fmt"
	"net/url"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// looks is a script whose value are the faults of a page that a browser can tell: too little contrast, texts that are
// cut, columns that one does not see, controls without a name or too small to touch, times without a zone.
//
//go:embed testdata/looks.js
var looks string

// TestConsoleLooks opens every page of a fleet with real content, light, dark and on a phone, and looks for faults.
func TestConsoleLooks(t *testing.T) {
	t.Parallel()
	f := town(t)
	link, stop := runConsole(t, f)
	base, tab := "http://"+link.Host, startBrowser(t)
	does(t, tab, chromedp.EmulateViewport(1280, 860), inColours("light"), inZone("Asia/Tokyo"))
	does(t, tab, chromedp.Navigate(base+"/login"))
	look(t, tab, "login")
	does(t, tab, chromedp.Navigate("about:blank"), chromedp.Navigate(link.String()+"x"))
	shows(t, tab, `document.querySelector("[role=alert]")?.textContent === "This token is wrong."`)
	look(t, tab, "login-wrong")
	does(t, tab, chromedp.Navigate("about:blank"), chromedp.Navigate(link.String()))
	shows(t, tab, `document.querySelector("main h1")?.textContent === "Flow"`)
	letter := firstOf(t, tab, base+"/dead?text=Lagerhaus", `tbody td.n a`)
	job := firstOf(t, tab, base+"/dead", `a[href^="/jobs/"]`)
	worker := "/workers/" + longOwner + "/" + longWorker
	event := "/event?owner=" + longOwner + "&worker=" + longWorker + "&id=" + url.QueryEscape(longEvent)
	for _, p := range [][2]string{
		{"/?owner=acme", "flow"}, {"/workers", "workers"}, {"/workers?match=none", "workers-none"}, {worker, "worker"},
		{worker + "/promote?version=3&percent=25", "promote"}, {worker + "/rollback", "rollback"},
		{worker + "/reset", "reset"},
		{"/dead", "dead"}, {"/dead?counts=yes&owner=" + longOwner, "dead-counted"}, {"/dead?text=none", "dead-none"},
		{"/dead?match=(", "dead-refused"}, {letter, "letter"}, {letter + "/edit", "edit"},
		{"/dead/replay?reason=exception&owner=" + longOwner, "replay"}, {"/dead/purge?all=yes", "purge"}, {job, "job"},
		{event, "event"}, {event + "/1", "event-waits"}, {"/schedules", "schedules"},
		{"/runs", "runs"}, {"/runs?owner=" + longOwner + "&outcome=failed", "runs-failed"}, {"/runs?text=none", "runs-none"},
		{"/usage", "usage"}, {"/usage?by=worker", "usage-worker"}, {"/usage?month=2001-01", "usage-none"},
		{"/schedules?owner=none", "schedules-none"},
		{"/queue", "queue"}, {"/queue?owner=" + longOwner + "&place=held", "queue-owner"},
		{"/queue?owner=z", "queue-none"}, {"/queue?owner=acme&older=x", "queue-refused"},
		{"/queue/event?owner=" + longOwner + "&id=" + url.QueryEscape(longEvent+"/held/1"), "queued"},
		{"/queue/event?owner=z&worker=mail&id=none", "queued-none"},
		{"/event?owner=acme&worker=mail&id=ran", "event-ran"},
		{"/sources", "sources"}, {"/sources?state=paused", "sources-paused"}, {"/sources?owner=z", "sources-none"},
		{"/owners", "owners"}, {"/owners/" + longOwner, "owner"}, {"/owners/" + longOwner + "/remove", "remove"},
		{"/isolates", "isolates"}, {"/doctor", "doctor"}, {"/audit", "audit"}, {"/audit?what=kv.rm", "audit-none"},
		{"/nothing", "nothing"},
	} {
		does(t, tab, chromedp.Navigate(base+p[0]))
		shows(t, tab, `document.querySelector("main h1") !== null && !document.querySelector("[data-load]")`)
		look(t, tab, p[1])
	}
	does(t, tab, chromedp.Navigate(base+"/runs?outcome=failed"))
	timeLine := gets(t, tab, chromedp.Evaluate[string](`document.querySelector('tbody a[href^="/event"]').href`))
	does(t, tab, chromedp.Navigate(timeLine))
	shows(t, tab, `document.querySelectorAll(".steps h3").length >= 4 && location.hash.startsWith("#run-")`)
	look(t, tab, "time-line")
	copies(t, tab, base+letter)
	pauses(t, tab, base)
	zones(t, tab, base+letter)
	does(t, tab, chromedp.Navigate(base+"/"))
	shows(t, tab, live+` >= 1`)
	stop()
	shows(t, tab, `document.querySelector("[data-live-state] [role=status]").textContent.startsWith("The connection is lost")`)
}

const live = `+document.querySelector("[data-live]").dataset.updates`

// look checks a page in both schemes and at both widths.
func look(t *testing.T, tab context.Context, name string) {
	t.Helper()
	for _, v := range []struct {
		name, scheme  string
		width, height int64
	}{
		{"light", "light", 1280, 860}, {"dark", "dark", 1280, 860}, {"phone", "light", 390, 844},
		{"phone-dark", "dark", 390, 844},
	} {
		does(t, tab, chromedp.EmulateViewport(v.width, v.height), inColours(v.scheme))
		fits(t, tab, int(v.width), name)
		require.Empty(t, gets(t, tab, chromedp.Evaluate[[]string](looks)), "%s, %s", name, v.name)
		screen(t, tab, "looks-"+name+"-"+v.name)
	}
	shows(t, tab, `globalThis.hurt === undefined`)
	does(t, tab, chromedp.EmulateViewport(1280, 860), inColours("light"))
}

// firstOf is the path of a link of a page.
func firstOf(t *testing.T, tab context.Context, page, link string) string {
	t.Helper()
	does(t, tab, chromedp.Navigate(page))
	shows(t, tab, `document.querySelector(`+quoted(link)+`) !== null`)
	return gets(t, tab, chromedp.Evaluate[string](`new URL(document.querySelector(`+quoted(link)+`).href).pathname`))
}

func inZone(zone string) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, tab *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, tab, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: zone})
		return chromedp.Void{}, err
	}
}

// paste pastes into the field that has the focus.
func paste(ctx context.Context, tab *chromedp.Target) (chromedp.Void, error) {
	_, err := cdp.Call(ctx, tab, input.DispatchKeyEvent, input.DispatchKeyEventParams{
		Type: input.DispatchKeyEventTypeKeyDown, Key: "v", Code: "KeyV", Commands: []string{"paste"},
	})
	return chromedp.Void{}, err
}

// copies takes an ID and a body along, and puts them into a field.
func copies(t *testing.T, tab context.Context, letter string) {
	t.Helper()
	for what, text := range map[string]string{
		"event id": `document.querySelector("[data-what='event id']").dataset.copy`,
		"body":     `document.querySelector("pre[data-what=body]").textContent`,
	} {
		does(t, tab, chromedp.Navigate(letter))
		button := `button[aria-label="Copy ` + what + `"]`
		shows(t, tab, `document.querySelector(`+quoted(button)+`) !== null`)
		want := gets(t, tab, chromedp.Evaluate[string](text))
		require.NotEmpty(t, want)
		does(t, tab, chromedp.Click(button))
		shows(t, tab, `document.querySelector(`+quoted(button)+`).textContent === "Copied"`)
		does(t, tab, chromedp.Navigate(letter+"/edit"))
		gets(t, tab, chromedp.Evaluate[bool](`(() => { const f = document.querySelector("textarea[name=headers]"); f.value = ""; f.focus(); return true; })()`))
		does(t, tab, paste)
		shows(t, tab, `document.querySelector("textarea[name=headers]").value === `+quoted(want))
	}
}

// pauses has a page stay as it is while others go on, and keeps what a person marks in it.
func pauses(t *testing.T, tab context.Context, base string) {
	t.Helper()
	does(t, tab, chromedp.Navigate(base+"/"))
	shows(t, tab, live+` >= 1`)
	gets(t, tab, chromedp.Evaluate[bool](`(() => { const cell = document.querySelector("#flow-processes td.id"); globalThis.marked = cell;
		getSelection().selectAllChildren(cell); globalThis.was = document.querySelector("#flow-owners").firstElementChild; return true; })()`))
	before := gets(t, tab, chromedp.Evaluate[float64](live))
	shows(t, tab, fmt.Sprintf(`%s > %f && !was.isConnected && marked.isConnected && String(getSelection()).length > 3`, live, before))

	const pause = `document.querySelector("[data-live-state] button")`
	does(t, tab, chromedp.Click(`[data-live-state] button`))
	shows(t, tab, pause+`.textContent === "Go on" && / UTC\.$/.test(document.querySelector("[data-live-state] [role=status]").textContent)`)
	screen(t, tab, "looks-paused")
	before = gets(t, tab, chromedp.Evaluate[float64](live))
	gets(t, tab, chromedp.Evaluate[bool](`(() => { globalThis.others = 0; new EventSource("/live/flow").addEventListener("parts", () => others++); return true; })()`))
	shows(t, tab, `others >= 3`)
	require.InDelta(t, before, gets(t, tab, chromedp.Evaluate[float64](live)), 0, "it stays as it was")
	does(t, tab, chromedp.Click(`[data-live-state] button`))
	shows(t, tab, fmt.Sprintf(`%s > %f && %s.textContent === "Pause"`, live, before, pause))
}

// zones looks at times: they go on while the page is open, and say when it was in UTC and where the person is.
func zones(t *testing.T, tab context.Context, letter string) {
	t.Helper()
	does(t, tab, chromedp.Navigate(letter))
	shows(t, tab, `/^[\d-]{10} [\d:]{8} UTC\n[\d-]{10} [\d:]{8} Asia\/Tokyo$/.test(document.querySelector(".facts time").title)`)
	gets(t, tab, chromedp.Evaluate[string](`document.querySelector(".facts time").dateTime = new Date(Date.now() - 7230000).toISOString()`))
	shows(t, tab, `document.querySelector(".facts time").textContent === "2 h ago"`)
}
