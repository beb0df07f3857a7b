// promises that are changed before a page is rewritten, and in the middle
// outcome: ok

const P = Promise.prototype, { then } = P, was = Object.getOwnPropertyDescriptor(P, "constructor");
const page = () => new ReadableStream({ n: 0, pull(c) { if (this.n++ < 20) c.enqueue(new TextEncoder().encode("<p>t</p>".repeat(20000))); else c.close(); } });
const early = () => {
  let left = 200;
  Object.defineProperty(P, "constructor", { configurable: true, get() { return left-- > 0 ? Object : was.value; } });
  P.then = function (a, b) { if (left > 0 && typeof a === "function") a(); return then.call(this, a, b); };
};
const back = () => { P.then = then; Object.defineProperty(P, "constructor", was); };

export default { async fetch() {
  P.then = function (a, b) { return then.call(this, typeof a === "function" ? (v) => a(v) : a, b); };
  const out = await new HTMLRewriter().on("p", { async element(e) { await null; e.append("x"); } }).transform(new Response("<p>t</p>")).text();
  if (out !== "<p>tx</p>") return new Response(out);
  back();
  for (let i = 0; i < 5; i++) {
    const reader = new HTMLRewriter().on("p.none", { element() {} }).transform(new Response(page())).body.getReader();
    early();
    try {
      const first = reader.read();
      first.catch(() => {});
      await null;
      setTimeout(back, 5);
      await new Promise((resolve) => setTimeout(resolve, 20));
    } finally { back(); }
    reader.cancel().catch(() => {});
  }
  return new Response("ok");
} };
