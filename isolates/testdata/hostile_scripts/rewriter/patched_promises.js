// promises that are changed before a page is rewritten, and in the middle
// outcome: ok

const P = Promise.prototype, { then } = P, was = Object.getOwnPropertyDescriptor(P, "constructor");
const page = () => new ReadableStream({ n: 0, pull(c) { if (this.n++ < 3) c.enqueue(new TextEncoder().encode("<p>t</p>".repeat(20000))); else c.close(); } });
// The n-th promise that something waits for is settled at once for it.
const early = (n) => {
  let at = 0, now = false;
  Object.defineProperty(P, "constructor", { configurable: true, get() { if (at++ !== n) return was.value; now = true; return Object; } });
  P.then = function (a, b) { if (now && typeof a === "function") { now = false; a(); } return then.call(this, a, b); };
};
const back = () => { P.then = then; Object.defineProperty(P, "constructor", was); };

export default { async fetch() {
  P.then = function (a, b) { return then.call(this, typeof a === "function" ? (v) => a(v) : a, b); };
  const out = await new HTMLRewriter().on("p", { async element(e) { await null; e.append("x"); } }).transform(new Response("<p>t</p>")).text();
  if (out !== "<p>tx</p>") return new Response(out);
  const said = new Set();
  for (let n = 0; n < 12; n++) {
    back();
    const reader = new HTMLRewriter().on("p.none", { element() {} }).transform(new Response(page())).body.getReader();
    early(n);
    const first = reader.read();
    then.call(first, () => said.add("read"), (e) => said.add(e.message));
    setTimeout(back, 10);
    await new Promise((resolve) => setTimeout(resolve, 15));
    back();
    reader.cancel().catch(() => {});
  }
  return new Response(said.has("HTMLRewriter: a step of the page is under way") ? "ok" : [...said].join("; "));
} };
