//go:build browser

package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
)

// TestTestEventsAndCode sends test events from the form, follows one as it runs, and goes from a stack to the line in
// the code: light, dark and on a phone.
func TestTestEventsAndCode(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t, func(c *config.Config) { c.ControlToken = "token-of-the-operators" })
	source := "// " + evil2 + "\n" + strings.Repeat("// "+longText+"\n", 40) + `
const gate = Promise.withResolvers();
export default {
	async fetch(request) { console.log("got", await request.text()); return Response.json({ ok: true, path: request.url },
		{ status: 201, headers: { "x-evil": "` + evil2 + `", "x-long": "` + strings.Repeat("long ", 60) + `" } }); },
	task(event) { if (event.payload === "go") { gate.resolve("gone"); return 1; } if (event.payload === "wait") { console.log("begun"); return gate.promise; }
		console.error(new Error("in the log")); fails(event.payload); },
};
function fails(x) { throw new TypeError("` + evil2 + ` " + x); }
`
	build(t, f, "acme", "w", source, `{"mode": "persistent", "retries": {"maxAttempts": 1}}`)
	link := startConsole(t, f)
	base, tab := "http://"+link.Host, startBrowser(t)
	does(t, tab, chromedp.EmulateViewport(1280, 860), chromedp.Navigate(link.String()))
	shows(t, tab, `document.querySelector("main h1")?.textContent === "Flow"`)

	does(t, tab, chromedp.Navigate(base+"/workers/acme/w"))
	shows(t, tab, `document.querySelector("main h1") !== null`)
	look(t, tab, "worker-of-code")
	does(t, tab, chromedp.Click(`a[href="/workers/acme/w/send"]`))
	shows(t, tab, `document.querySelector("#send [value=fetch]").checked`)
	hidden := func(field string) string {
		return `document.querySelector("#send [name=` + field + `]").getClientRects().length === 0`
	}
	shows(t, tab, hidden("cron")+` && !(`+hidden("path")+`)`)
	look(t, tab, "send-fetch")
	does(t, tab, chromedp.Click(`#send [value=scheduled]`))
	shows(t, tab, hidden("path")+` && !(`+hidden("cron")+`)`)
	look(t, tab, "send-scheduled")
	does(t, tab, chromedp.Click(`#send [value=task]`))
	shows(t, tab, hidden("path")+` && `+hidden("cron"))

	fill := func(field, text string) {
		gets(t, tab, chromedp.Evaluate[string](`document.querySelector("#send [name=`+field+`]").value = `+quoted(text)))
	}
	fill("headers", "Reply-To: x")
	does(t, tab, chromedp.Click(`#send .actions button`))
	shows(t, tab, `document.querySelector("[role=alert]")?.textContent.includes("only the fleet sets it")`)
	look(t, tab, "send-refused")

	fill("headers", "X-Own: yes")
	fill("body", `"wait"`)
	does(t, tab, chromedp.Click(`#send .actions button`))
	shows(t, tab, `document.querySelector("#sent-lines .log .text")?.textContent === "begun"`)
	look(t, tab, "sent-runs")
	require.Zero(t, f.Pinwheel("send", "task", "acme/w", "--data", `"go"`).Code)
	shows(t, tab, `document.querySelector("#sent-reply .badge.ok") && document.querySelector("[data-live-state]").hidden`)
	look(t, tab, "sent")

	does(t, tab, chromedp.Navigate(base+"/workers/acme/w/send?kind=fetch"))
	shows(t, tab, `document.querySelector("#send [value=fetch]").checked`)
	fill("body", evil2)
	does(t, tab, chromedp.Click(`#send .actions button`))
	shows(t, tab, `document.querySelector("#sent-reply .badge.ok")`)
	look(t, tab, "sent-fetch")

	does(t, tab, chromedp.Navigate(base+"/workers/acme/w/send?kind=task"))
	shows(t, tab, `document.querySelector("#send [value=task]").checked`)
	does(t, tab, chromedp.Click(`#send .actions button`))
	shows(t, tab, `document.querySelector("#sent-reply .badge.bad") && document.querySelector("#sent-lines a[href*=code]")`)
	look(t, tab, "sent-failed")
	does(t, tab, chromedp.Click(`#sent-lines a[href*=code]`))
	shows(t, tab, `document.querySelector(".code .marked mark")?.textContent.includes("in the log")`)
	shows(t, tab, `(() => { const r = document.querySelector(".code .marked").getBoundingClientRect(); return r.top > 0 && r.bottom < innerHeight; })()`)
	look(t, tab, "code")

	// The last hour comes by itself when a minute is over.
	does(t, tab, chromedp.Navigate(base+"/"))
	shows(t, tab, `document.querySelector("#flow-hour .spark polyline") !== null`)
	look(t, tab, "flow-hour")
	does(t, tab, chromedp.Navigate(base+"/owners/acme"))
	shows(t, tab, `document.querySelector("#hour + .cards .spark") !== null || document.querySelector(".cards .spark") !== null`)
	look(t, tab, "owner-hour")
}
