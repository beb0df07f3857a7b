// Calls of caches, for Cloudflare's workerd in miniflare and for Pinwheel. Each case returns what can be shown as JSON.
const url = (p) => "https://cache.test/" + p;
const shown = async (r) => r && [r.status, [...r.headers].filter(([k]) => k !== "date" && k !== "age"), await r.text()];
const put = (p, body, init) => caches.default.put(url(p), new Response(body, init));
const max = { headers: { "Cache-Control": "max-age=60" } };
const cases = {
  "shape": () => [Object.prototype.toString.call(caches), Object.prototype.toString.call(caches.default), typeof caches.open, typeof caches.match, typeof caches.has, typeof caches.keys, typeof caches.delete, typeof caches.default.add, typeof caches.default.matchAll, typeof caches.default.keys, typeof CacheStorage, typeof Cache],
  "match missing": async () => (await caches.default.match(url("missing"))) === undefined,
  "put match": async () => { const r = await put("a", "hello", { status: 201, headers: { "Cache-Control": "max-age=60", "X-A": "1", "Content-Type": "text/x" } }); return [r === undefined, await shown(await caches.default.match(url("a")))]; },
  "put without cache-control": async () => { await put("n", "hello"); return await shown(await caches.default.match(url("n"))); },
  "put no-store": async () => { await put("ns", "x", { headers: { "Cache-Control": "no-store" } }); return await shown(await caches.default.match(url("ns"))); },
  "put private": async () => { await put("pr", "x", { headers: { "Cache-Control": "private, max-age=60" } }); return await shown(await caches.default.match(url("pr"))); },
  "put no-cache": async () => { await put("nc", "x", { headers: { "Cache-Control": "no-cache" } }); return await shown(await caches.default.match(url("nc"))); },
  "put max-age 0": async () => { await put("m0", "x", { headers: { "Cache-Control": "max-age=0" } }); return await shown(await caches.default.match(url("m0"))); },
  "put s-maxage": async () => { await put("sm", "x", { headers: { "Cache-Control": "max-age=0, s-maxage=60" } }); return await shown(await caches.default.match(url("sm"))); },
  "put expires": async () => { await put("ex", "x", { headers: { "Expires": "Tue, 01 Jan 2030 00:00:00 GMT" } }); return await shown(await caches.default.match(url("ex"))); },
  "put set-cookie": async () => { await put("sc", "x", { headers: { "Cache-Control": "max-age=60", "Set-Cookie": "a=b" } }); return await shown(await caches.default.match(url("sc"))); },
  "put set-cookie private": async () => { await put("scp", "x", { headers: { "Cache-Control": "max-age=60, private=Set-Cookie", "Set-Cookie": "a=b" } }); return await shown(await caches.default.match(url("scp"))); },
  "put vary star": () => put("vs", "x", { headers: { "Vary": "*", "Cache-Control": "max-age=60" } }),
  "put vary": async () => { await put("va", "x", { headers: { "Vary": "Accept", "Cache-Control": "max-age=60" } }); return [await shown(await caches.default.match(new Request(url("va"), { headers: { Accept: "a" } }))), await shown(await caches.default.match(url("va")))]; },
  "put 206": () => put("206", "x", { status: 206, ...max }),
  "put 304": async () => { await caches.default.put(url("304"), new Response(null, { status: 304, ...max })); return await shown(await caches.default.match(url("304"))); },
  "put 404": async () => { await put("404", "gone", { status: 404, ...max }); return await shown(await caches.default.match(url("404"))); },
  "put 500": async () => { await put("500", "bad", { status: 500, ...max }); return await shown(await caches.default.match(url("500"))); },
  "put 302": async () => { await caches.default.put(url("302"), new Response(null, { status: 302, headers: { Location: "/x", "Cache-Control": "max-age=60" } })); return await shown(await caches.default.match(url("302"))); },
  "put 204": async () => { await caches.default.put(url("204"), new Response(null, { status: 204, ...max })); return await shown(await caches.default.match(url("204"))); },
  "put POST": () => caches.default.put(new Request(url("post"), { method: "POST" }), new Response("x", max)),
  "put HEAD": () => caches.default.put(new Request(url("head"), { method: "HEAD" }), new Response("x", max)),
  "put used": async () => { const r = new Response("x", max); await r.text(); await caches.default.put(url("used"), r); },
  "put locked": async () => { const r = new Response("x", max); r.body.getReader(); await caches.default.put(url("locked"), r); },
  "put consumes": async () => { const r = new Response("x", max); await caches.default.put(url("consumes"), r); return r.bodyUsed; },
  "put stream": async () => { await caches.default.put(url("stream"), new Response(new ReadableStream({ start(c) { c.enqueue(new TextEncoder().encode("ab")); c.close(); } }), max)); return await shown(await caches.default.match(url("stream"))); },
  "put twice": async () => { await put("tw", "1", max); await put("tw", "2", max); return await shown(await caches.default.match(url("tw"))); },
  "put no args": () => caches.default.put(),
  "put one arg": () => caches.default.put(url("x")),
  "put not a response": () => caches.default.put(url("x"), "text"),
  "put bad url": () => caches.default.put("not a url", new Response("x", max)),
  "put other scheme": () => caches.default.put("ftp://x/y", new Response("x", max)),
  "match POST": async () => { await put("mp", "x", max); return [(await caches.default.match(new Request(url("mp"), { method: "POST" }))) === undefined, await shown(await caches.default.match(new Request(url("mp"), { method: "POST" }), { ignoreMethod: true }))]; },
  "match HEAD": async () => { await put("mh", "x", max); return await shown(await caches.default.match(new Request(url("mh"), { method: "HEAD" }))); },
  "match URL object": async () => { await put("uo", "x", max); return await shown(await caches.default.match(new URL(url("uo")))); },
  "match fragment": async () => { await put("fr", "x", max); return await shown(await caches.default.match(url("fr#frag"))); },
  "match query": async () => { await put("q?a=1", "x", max); return [await shown(await caches.default.match(url("q?a=1"))), (await caches.default.match(url("q?a=2"))) === undefined, (await caches.default.match(url("q"), { ignoreSearch: true })) === undefined]; },
  "match etag": async () => { await put("et", "x", { headers: { "Cache-Control": "max-age=60", ETag: '"v1"' } }); return [await shown(await caches.default.match(new Request(url("et"), { headers: { "If-None-Match": '"v1"' } }))), await shown(await caches.default.match(new Request(url("et"), { headers: { "If-None-Match": '"v2"' } })))]; },
  "match weak etag": async () => { await put("we", "x", { headers: { "Cache-Control": "max-age=60", ETag: 'W/"v1"' } }); return [await shown(await caches.default.match(new Request(url("we"), { headers: { "If-None-Match": '"v1"' } }))), await shown(await caches.default.match(new Request(url("we"), { headers: { "If-None-Match": '"v0", W/"v1"' } }))), await shown(await caches.default.match(new Request(url("we"), { headers: { "If-None-Match": "*" } })))]; },
  "match modified": async () => { await put("lm", "x", { headers: { "Cache-Control": "max-age=60", "Last-Modified": "Tue, 01 Jan 2019 00:00:00 GMT" } }); return [await shown(await caches.default.match(new Request(url("lm"), { headers: { "If-Modified-Since": "Tue, 01 Jan 2019 00:00:00 GMT" } }))), await shown(await caches.default.match(new Request(url("lm"), { headers: { "If-Modified-Since": "Mon, 01 Jan 2018 00:00:00 GMT" } })))]; },
  "match range": async () => { await put("ra", "0123456789", { headers: { "Cache-Control": "max-age=60", "Content-Length": "10" } }); return [await shown(await caches.default.match(new Request(url("ra"), { headers: { Range: "bytes=2-4" } }))), await shown(await caches.default.match(new Request(url("ra"), { headers: { Range: "bytes=20-" } })))]; },
  "delete": async () => { await put("de", "x", max); return [await caches.default.delete(url("de")), await caches.default.delete(url("de")), (await caches.default.match(url("de"))) === undefined]; },
  "delete POST": async () => { await put("dp", "x", max); return [await caches.default.delete(new Request(url("dp"), { method: "POST" })), await caches.default.delete(new Request(url("dp"), { method: "POST" }), { ignoreMethod: true })]; },
  "open": async () => { const c = await caches.open("mine"); await c.put(url("o"), new Response("in mine", max)); return [await shown(await c.match(url("o"))), (await caches.default.match(url("o"))) === undefined, await shown(await (await caches.open("mine")).match(url("o"))), (await (await caches.open("other")).match(url("o"))) === undefined]; },
  "open default": async () => { const c = await caches.open("default"); await put("od", "x", max); return (await c.match(url("od"))) === undefined; },
  "open no args": () => caches.open(),
  "open number": async () => Object.prototype.toString.call(await caches.open(5)),
  "headers immutable": async () => { await put("im", "x", max); const r = await caches.default.match(url("im")); r.headers.set("a", "b"); return r.headers.get("a"); },
  "url": async () => { await put("ur", "x", max); const r = await caches.default.match(url("ur")); return [r.url, r.type, r.redirected, r.ok, r.statusText]; },
  "add": () => caches.default.add(url("x")),
  "has": () => caches.has("x"),
};

export default {
  async fetch() {
    const all = {};
    for (const [name, run] of Object.entries(cases)) {
      try {
        const value = await run();
        all[name] = value === undefined ? "undefined" : value;
      } catch (e) {
        // The messages of TypeErrors are each runtime's own.
        all[name] = e instanceof TypeError ? "throws a TypeError" : `throws ${e.constructor.name}: ${e.message}`;
      }
    }
    return Response.json(all);
  },
};
