package compat_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func testMarkdown(t *testing.T, f *fleet) {
	w := f.deploy(t, "markdown.js")
	const text = "# Title\n\nSome *text* & `code` with [a link](https://example.com/a?b=1&c).\n\n" +
		"- [x] done\n- open\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n```js\nif (a < b) {}\n```\n"
	require.Equal(t, "<h1>Title</h1>\n<p>Some <em>text</em> &amp; <code>code</code> with <a href=\"https://example.com/a?b=1&amp;c\">a link</a>.</p>\n"+
		"<ul>\n<li><input checked=\"\" disabled=\"\" type=\"checkbox\"> done</li>\n<li>open</li>\n</ul>\n"+
		"<table>\n<thead>\n<tr>\n<th>a</th>\n<th align=\"right\">b</th>\n</tr>\n</thead>\n<tbody><tr>\n<td>1</td>\n<td align=\"right\">2</td>\n</tr>\n</tbody></table>\n"+
		"<pre><code class=\"language-js\">if (a &lt; b) {}\n</code></pre>\n", w.fetch(t, "POST", "/", text).body)
	require.Equal(t, "<h1>TITLE</h1>\n<p><a href=\"/x\" title=\"linked\">l</a></p>\n", w.fetch(t, "POST", "/?shout", "# Title\n\n[l](/x)").body)
}

func testPreact(t *testing.T, f *fleet) {
	w := f.deploy(t, "preact.tsx")
	require.Equal(t, `<ul aria-label="a &quot;b&quot;"><li data-count="1" style="color:red;margin-top:4px;" class="dark">A</li>`+
		`<li data-count="5" style="color:red;margin-top:4px;" class="dark">&lt;B>&amp;Ä</li></ul>`+
		`<input disabled id="given" value="&lt;&amp;>"/><p><i>raw</i></p>0text &amp; &lt;tag>`, w.get(t, "/?item=a&item=%3Cb%3E%26%C3%A4").body)
	require.Equal(t, "200 <main><!--$s--><b>late</b><!--/$s--></main>", w.get(t, "/async").text())
	streamed := w.get(t, "/stream").body
	require.Contains(t, streamed, "<i>wait</i><!--/$s")
	require.Regexp(t, `<preact-island hidden data-target="-?\d+"><b>late</b></preact-island></div>$`, streamed)
}
