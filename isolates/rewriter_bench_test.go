package isolates

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

// BenchmarkHTMLRewriter rewrites pages of 4 MB, which come in chunks of 64 KB: with one simple selector and few
// matches, with text that is read, and with a handler for each element.
func BenchmarkHTMLRewriter(b *testing.B) {
	for name, build := range map[string]string{
		"few":  `r.on("a.last", { element(e) { e.setAttribute("href", "/"); } })`,
		"text": `r.on("p", { text(t) { length += t.text.length; } })`,
		"all":  `r.on("*", { element(e) { if (e.hasAttribute("id")) e.remove(); } })`,
		"none": `0`,
	} {
		b.Run(name, func(b *testing.B) {
			n := newBench(b)
			w := worker("w", `
				const piece = '<div class="row"><p class="text">Some text that somebody reads, <a href="/a/b?c=d">with a link</a>, and more of it.</p><img src="/i/x.png" alt="An image"></div>\n';
				const bytes = new TextEncoder().encode(piece.repeat(400) + '<a class="last">x</a>');
				let length = 0;
				export default { async task(e) {
					const { n } = await e.json();
					for (let i = 0; i < n; i++) {
						let left = Math.ceil(4194304 / bytes.length);
						const page = new ReadableStream({ pull(c) { if (left-- > 0) c.enqueue(bytes); else c.close(); } });
						const r = new HTMLRewriter();
						`+build+`;
						for await (const chunk of r.transform(new Response(page)).body) length += chunk.length;
					}
					return length;
				} }`)
			w.Limits = workers.Limits{CPU: workers.Millis(60 * time.Second), Wall: workers.Millis(patience)}
			require.Nil(b, n.run(w, task(`{"n":1}`)).end.Failure)
			b.SetBytes(4 << 20)
			b.ResetTimer()
			for range b.N {
				require.Nil(b, n.run(w, task(`{"n":1}`)).end.Failure)
			}
		})
	}
}
