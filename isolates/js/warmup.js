// What first events commonly do: runtime.go runs it before the snapshot is made.

const log = [];

export default {
  async fetch(request, env, ctx) {
    const url = new URL(request.url);
    const params = url.searchParams;
    log.push(`${request.method} ${url.pathname} ${params.get("a")} ${request.headers.get("content-type")} ${env.NAME}`);
    ctx.waitUntil(Promise.resolve());
    setTimeout(() => {}, 1);
    switch (url.pathname) {
      case "/json": {
        const body = await request.json();
        return Response.json({ hello: body.name }, { status: 201, headers: { "x-warmup": "yes" } });
      }
      case "/text":
        return new Response(`${await request.text()} ${[...params].length}`, { headers: new Headers([["a", "b"]]) });
      case "/features": {
        const bytes = new TextEncoder().encode(atob(btoa(params.get("a"))));
        await crypto.subtle.digest("SHA-256", bytes).catch(() => {}); // nothing answers yet
        const key = await crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["sign", "verify"]);
        await crypto.subtle.sign("HMAC", key, bytes).catch(() => {});
        await crypto.subtle.verify("HMAC", key, bytes, bytes).catch(() => {});
        const form = new FormData();
        form.append("a", new Blob([bytes]));
        new URLPattern({ pathname: "/:name" }).exec(url);
        const { readable, writable } = new TransformStream();
        new Response(form).body.pipeTo(writable);
        const reader = readable.getReader();
        while (!(await reader.read()).done);
        return Response.json({ at: performance.now(), copy: structuredClone({ a: [1] }), text: new TextDecoder().decode(bytes) });
      }
      case "/stream":
        return new Response(request.body);
      case "/":
        return new Response("ok");
    }
    return new Response(new TextEncoder().encode("not found"), { status: 404 });
  },
  async task(event) {
    const { name } = event.payload;
    console.log("task", event.id, event.attempt, name, { nested: [1] });
    return { name, at: new Date(0).toISOString(), bytes: event.text().length };
  },
  async scheduled(event) {
    console.info(event.cron, event.scheduledTime);
  },
};
