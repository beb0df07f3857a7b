package isolates

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

const longPage = `
const piece = new TextEncoder().encode('<div class="a b c" title="x">text</div>'.repeat(1000));
const page = (n) => new ReadableStream({ pull(c) { if (n-- > 0) c.enqueue(piece); else c.close(); } });
`

// The CPU time that Go uses for a page is the run's, and ends with the run's limit.
func TestRewritingIsCharged(t *testing.T) {
	t.Parallel()
	const code = longPage + `export default { async task({ payload }) {
		const r = new HTMLRewriter();
		for (let i = 0; i < 500; i++) r.on("[title*=y" + i + "]", {});
		let n = 0;
		for await (const chunk of r.transform(new Response(page(payload.pieces))).body) n += chunk.length;
		return n;
	} }`
	b := newBench(t)
	w := worker("w", code)
	w.Limits = workers.Limits{CPU: workers.Millis(20 * time.Second), Wall: workers.Millis(patience)}
	before := b.pool.done.offloadCPU.Load()
	o := b.run(w, task(`{"pieces":20}`))
	require.Nil(t, o.end.Failure)
	require.Contains(t, string(o.reply.Body), "780000")
	inGo := time.Duration(b.pool.done.offloadCPU.Load() - before)
	require.Positive(t, inGo)
	require.Greater(t, o.end.CPU, inGo)
	w = worker("poor", code)
	w.Limits = workers.Limits{CPU: workers.Millis(20 * time.Millisecond), Wall: workers.Millis(patience)}
	o = b.run(w, task(`{"pieces":1000000}`))
	require.NotNil(t, o.end.Failure)
	require.Equal(t, events.ReasonCPU, o.end.Failure.Reason)
}

// A page belongs to the event that began to read it.
func TestAPageOfAPastEventIsOver(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := worker("w", longPage+`let reader; export default { async task() {
		if (reader) try { for (;;) if ((await reader.read()).done) return "read"; } catch (e) { return String(e); }
		reader = new HTMLRewriter().on("i", {}).transform(new Response(page(100))).body.getReader();
		await reader.read();
		return "kept";
	} }`)
	require.Contains(t, string(b.run(w, task("{}")).reply.Body), "kept")
	o := b.run(w, task("{}"))
	require.Nil(t, o.end.Failure)
	require.Contains(t, string(o.reply.Body), "TypeError: HTMLRewriter: the page belongs to an event that is over")
}

// A page that a subrequest brings in a coding is rewritten decoded, and goes out as a reply.
func TestPagesOfSubrequestsAreRewritten(t *testing.T) {
	t.Parallel()
	b := newBench(t, loopback)
	b.cpu = ample
	text := strings.Repeat("<p>grüße</p>", 20_000)
	target := codedServer(t, text)
	for _, coding := range []string{"gzip", "br"} {
		e := fetch("GET", "http://x/", "")
		o := b.run(worker("w", `export default { async fetch() {
			const page = await fetch("`+target+`/`+coding+`", { headers: { "accept-encoding": "gzip, br" } });
			return new HTMLRewriter().on("p", { text(t) { if (t.lastInTextNode) t.after("!"); } }).transform(page);
		} }`), e)
		require.Nil(t, o.end.Failure, coding)
		require.Equal(t, strings.ReplaceAll(text, "</p>", "!</p>"), string(o.reply.Body), coding)
		require.NotContains(t, strings.Join(o.reply.Headers, " "), "content-encoding", coding)
	}
}

// What stays of an open element does not keep its attributes, and not the bytes of the page.
func TestAPageOfOpenElementsStaysSmall(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.cpu = ample
	w := worker("w", `export default { async task() {
		const piece = new TextEncoder().encode(("<p title='" + "x".repeat(4000) + "'>").repeat(60));
		let n = 150;
		const page = new ReadableStream({ pull(c) { if (n-- > 0) c.enqueue(piece); else c.close(); } });
		const r = new HTMLRewriter().on("p", { element(e) { e.getAttribute("title"); e.append("y"); e.before("x".repeat(4000)); } });
		let size = 0;
		for await (const chunk of r.transform(new Response(page)).body) size += chunk.length;
		return size > 60 * 150 * 8000 ? "small" : "short";
	} }`)
	w.Limits = workers.Limits{HeapMB: 32, CPU: workers.Millis(20 * time.Second), Wall: workers.Millis(patience)}
	o := b.run(w, task("{}"))
	require.Nil(t, o.end.Failure)
	require.Contains(t, string(o.reply.Body), "small")
}

// All selectors of a rewriter have a bound of bytes, and calls of on in getters count.
func TestRewritersBoundTheirSelectors(t *testing.T) {
	t.Parallel()
	o := newBench(t).run(worker("w", `export default { async task() {
		const said = [];
		const attempt = (f) => { try { f(); said.push("ok"); } catch (e) { said.push(String(e)); } };
		const r = new HTMLRewriter();
		for (let i = 0; i < 4; i++) r.on("é".repeat(8192), {});
		attempt(() => r.on("a", {}));
		const many = new HTMLRewriter();
		for (let i = 0; i < 1023; i++) many.onDocument({});
		attempt(() => many.onDocument({ get end() { many.onDocument({}); } }));
		let text = "";
		await new HTMLRewriter().on("p", { element(e) {
			e.before({ toString() { e.before("1"); return "2"; } });
		} }).transform(new Response("<p>")).text().then((t) => { text = t; });
		return [...said, text];
	} }`), task("{}"))
	require.Nil(t, o.end.Failure)
	body := string(o.reply.Body)
	require.Contains(t, body, "TypeError: HTMLRewriter.on: the selectors have more than 65536 bytes")
	require.Contains(t, body, "TypeError: HTMLRewriter: more than 1024 calls of on and onDocument")
	require.Contains(t, body, "12<p>")
}

// A page that is cancelled before its first byte is over.
func TestAPageThatIsCancelledEarlyIsOver(t *testing.T) {
	t.Parallel()
	o := newBench(t).run(worker("w", longPage+`export default { async task() {
		const reader = new HTMLRewriter().on("div[title~=y]", {}).transform(new Response(page(100))).body.getReader();
		const first = reader.read();
		await reader.cancel();
		await new Promise((resolve) => setTimeout(resolve, 20));
		return String((await first).done);
	} }`), task("{}"))
	require.Nil(t, o.end.Failure)
	require.Contains(t, string(o.reply.Body), "true")
}
