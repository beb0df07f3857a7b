package console_test

import (
	"fmt"
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A stack leads to the line of the author's file, in the version that ran. Code of others stays text.
func TestStacksLeadToTheCode(t *testing.T) {
	t.Parallel()
	const evil = `</pre><script>hurt()</script>`
	f := startFleet(t)
	deployed(t, f, "w", "// "+evil+strings.Repeat("\n// more", 20)+`
export default { task(event) { console.log("at x (\"><script>hurt():1:2)\n    at y (b.js:3:4)"); fail(event.payload); } }
function fail(x) { throw new Error("no"); }
`)
	f.Pinwheel("send", "task", "acme/w", "--data", "1")
	p := newPerson(t, startConsole(t, f), viewToken)
	letter := p.page("/dead/" + firstLetter(t, p, "/dead"))
	link := regexp.MustCompile(`<a href="(/workers/acme/w/code\?file=w\.js&amp;line=23&amp;version=1-[0-9a-f]+)#L23">w\.js:23:\d+</a>`).
		FindStringSubmatch(letter)
	require.NotNil(t, link, letter)
	page := p.page(html.UnescapeString(link[1]))
	require.Contains(t, page, `<span class="line marked" id="L23" data-n="23"><mark>function fail(x) { throw new Error(&#34;no&#34;); }</mark>`)
	require.Contains(t, page, `id="L1" data-n="1">// &lt;/pre&gt;&lt;script&gt;hurt()`)
	require.Contains(t, page, "Lines 1–23 of 23")
	require.NotContains(t, page, "<script>hurt")
	require.Contains(t, p.page("/workers/acme/w"), `href="/workers/acme/w/code"`)

	parts := p.follow("/live/tail?owner=acme")
	line := ""
	require.Eventually(t, func() bool {
		f.Pinwheel("send", "task", "acme/w", "--data", "1")
		select {
		case line = <-parts:
			return strings.Contains(line, "b.js")
		default:
			return false
		}
	}, patience, 10*time.Millisecond)
	require.Regexp(t, `at y \(<a href="/workers/acme/w/code\?file=b\.js&amp;line=3&amp;version=1-[0-9a-f]+#L3">b\.js:3:4</a>\)`,
		line)
	require.NotContains(t, line, "<script>")

	for path, want := range map[string]int{
		"?file=none.js": 404, "?line=x": 400, "?line=99": 400, "?version=9": 404, "?file=" + url.QueryEscape(evil): 404,
	} {
		code, body := p.get("/workers/acme/w/code" + path)
		require.Equal(t, want, code, path)
		require.NotContains(t, body, "<script>hurt", path)
	}
	code, _ := p.get("/workers/acme/none/code")
	require.Equal(t, 404, code)
	code, _ = newPerson(t, p.base, "").get("/workers/acme/w/code")
	require.Equal(t, 303, code, "nobody sees code")
}

// A long file is shown in parts, around the line that is marked.
func TestLongCodeIsShownInParts(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	var source strings.Builder
	for n := range 5000 {
		fmt.Fprintf(&source, "// line %d\n", n+1)
	}
	deployed(t, f, "w", source.String()+"export default { task() {} }")
	p := newPerson(t, startConsole(t, f), viewToken)
	page := p.page("/workers/acme/w/code?line=3000")
	require.Contains(t, page, `<mark>// line 3000</mark>`)
	require.Contains(t, page, "Lines 2000–3999 of 5001")
	next := regexp.MustCompile(`rel="next" href="([^"]+)"`).FindStringSubmatch(page)
	require.NotNil(t, next)
	page = p.page(html.UnescapeString(next[1]))
	require.Contains(t, page, `data-n="4000">// line 4000`)
	require.NotContains(t, page, "<mark>")
}
