//go:build browser

package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// patience is how long a test waits for a fact on a busy machine.
const patience = 2 * time.Minute

// screens is the directory for screenshots, for people to look at; "" = they are not kept.
var screens = os.Getenv("SCREENSHOTS")

// startBrowser starts Chromium and opens a tab.
func startBrowser(t *testing.T) context.Context {
	t.Helper()
	// The sandbox of Chromium needs rights that a test has not. A loaded machine starts Chromium slowly.
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.WSURLReadTimeout(patience),
		chromedp.WindowSize(900, 600))
	all, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	return newTab(t, all)
}

func newTab(t *testing.T, in context.Context) context.Context {
	t.Helper()
	ctx, cancel := chromedp.NewContext(in)
	t.Cleanup(cancel)
	require.NoError(t, chromedp.Do(ctx))
	return ctx
}

func does(t *testing.T, tab context.Context, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(tab, patience)
	defer cancel()
	require.NoError(t, chromedp.Do(ctx, steps...))
}

// gets runs an action that has a value.
func gets[T any](t *testing.T, tab context.Context, action chromedp.Action[T]) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(tab, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, action)
	require.NoError(t, err)
	return value
}

// shows waits until a JavaScript expression is true, in the document that the tab has then: one that the tab leaves
// meanwhile ends the question. An expression that throws is not true yet: the tab may still show the page before.
func shows(t *testing.T, tab context.Context, expression string) {
	t.Helper()
	quietly := "(() => { try { return !!(" + expression + "); } catch { return false; } })()"
	for deadline := time.Now().Add(patience); ; {
		ok, err := chromedp.Run(tab, chromedp.Poll[bool](quietly, chromedp.WithPollingTimeout(patience)))
		if err != nil && (strings.Contains(err.Error(), "context with specified id") ||
			strings.Contains(err.Error(), "target navigated")) && tab.Err() == nil && time.Now().Before(deadline) {
			continue
		}
		require.NoError(t, err, expression)
		require.True(t, ok, expression)
		return
	}
}

// screen keeps a picture of a tab.
func screen(t *testing.T, tab context.Context, name string) {
	t.Helper()
	png := gets(t, tab, chromedp.CaptureScreenshot())
	require.NotEmpty(t, png)
	if screens != "" {
		require.NoError(t, os.MkdirAll(screens, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(screens, name+".png"), png, 0o600))
	}
}

// uploadsAt bounds what a tab sends, in bytes a second.
func uploadsAt(rate float64) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, tab *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, tab, conditionsByRule, conditions{network.EmulateNetworkConditionsByRuleParams{
			MatchedNetworkConditions: []*network.Conditions{{DownloadThroughput: -1, UploadThroughput: rate}},
		}, false})
		return chromedp.Void{}, err
	}
}

// conditions are those of the network. Chromium 148 wants to know for all rules together whether it is offline, and
// later releases for each of them.
type conditions struct {
	network.EmulateNetworkConditionsByRuleParams
	Offline bool `json:"offline"`
}

var conditionsByRule = cdp.Command[conditions, network.EmulateNetworkConditionsByRuleResult]{
	Method: network.CommandEmulateNetworkConditionsByRule,
}

const heading = `document.querySelector("h2")?.textContent`

func TestSite(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	dir := filepath.Join(home, "examples", "site")
	require.NoError(t, os.CopyFS(dir, os.DirFS("../../../examples/site")))
	npm := exec.CommandContext(t.Context(), "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline")
	npm.Dir = dir
	out, err := npm.CombinedOutput()
	require.NoError(t, err, "%s", out)
	at := startDev(t, home)
	tab := startBrowser(t)

	// Products, and a page of one of them without another document. The address of that page works too.
	does(t, tab, chromedp.Navigate(at))
	shows(t, tab, `document.querySelectorAll("main li").length === 3`)
	screen(t, tab, "products")
	require.True(t, gets(t, tab, chromedp.Evaluate[bool](`globalThis.same = true`)))
	does(t, tab, chromedp.Click(`a[href="products/kite"]`))
	shows(t, tab, heading+` === "Kite" && location.pathname === "/shop/products/kite" && same`)
	does(t, tab, chromedp.Reload())
	shows(t, tab, heading+` === "Kite" && globalThis.same === undefined`)
	screen(t, tab, "product")
	does(t, tab, chromedp.NavigateBack())
	shows(t, tab, heading+` === "Products" && document.querySelector("nav a").hasAttribute("aria-current")`)

	// An upload says how far it is. Without a bound it may be over before Chromium has told of a part.
	const size = 24 << 20
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, make([]byte, size), 0o600))
	does(t, tab, uploadsAt(size), chromedp.Click(`a[href="upload"]`), chromedp.SetUploadFiles(`input[type=file]`,
		[]string{file}))
	shows(t, tab, fmt.Sprintf(`document.querySelector("#said").textContent === "The server has %d bytes"`, size))
	shows(t, tab, `document.querySelector("progress").value === 1 && +document.querySelector("progress").dataset.steps > 1`)
	screen(t, tab, "upload")

	does(t, tab, chromedp.Click(`a[href="clock"]`))
	shows(t, tab, `+document.querySelector("#time").dataset.id >= 3`)
	screen(t, tab, "clock")

	// Two pages chat. What one writes is text for the other one.
	other := newTab(t, tab)
	does(t, tab, chromedp.Click(`a[href="chat"]`))
	does(t, other, chromedp.Navigate(at+"chat"))
	const text = `<img src=x onerror="globalThis.hurt = true">`
	for _, page := range []context.Context{tab, other} {
		shows(t, page, `document.querySelector("#state")?.textContent === "connected"`)
	}
	does(t, tab, chromedp.SendKeys(`input[name=text]`, text), chromedp.Click(`form button`))
	does(t, other, chromedp.SendKeys(`input[name=text]`, "hello"), chromedp.Click(`form button`))
	for _, page := range []context.Context{tab, other} {
		shows(t, page, `document.querySelectorAll("#messages li").length === 2`)
		said := gets(t, page, chromedp.Evaluate[string](`[...document.querySelectorAll("#messages li")].map((li) => li.textContent).join("\n")`))
		require.ElementsMatch(t, []string{text, "hello"}, strings.Split(said, "\n"))
		shows(t, page, `globalThis.hurt === undefined`)
	}
	screen(t, other, "chat")

	// A saved page is the one that the next request gets.
	change(t, filepath.Join(dir, "public", "index.html"), "<h1>Shop</h1>", "<h1>Shop of winds</h1>")
	require.Eventually(t, func() bool {
		does(t, other, chromedp.Navigate(at))
		return gets(t, other, chromedp.Evaluate[string](`document.querySelector("h1").textContent`)) == "Shop of winds"
	}, patience, 100*time.Millisecond)
	shows(t, other, `document.querySelectorAll("main li").length === 3`)
	screen(t, other, "saved")
}
