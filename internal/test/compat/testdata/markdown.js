import { Marked, marked } from "marked";

const shouting = new Marked({
  gfm: true,
  renderer: { heading({ tokens, depth }) { return `<h${depth}>${this.parser.parseInline(tokens).toUpperCase()}</h${depth}>\n`; } },
  walkTokens: async (token) => { if (token.type === "link") token.title = await Promise.resolve("linked"); },
  async: true,
});

export default {
  async fetch(request) {
    const text = await request.text();
    const html = new URL(request.url).searchParams.has("shout") ? await shouting.parse(text) : marked.parse(text);
    return new Response(html, { headers: { "content-type": "text/html; charset=utf-8" } });
  },
};
