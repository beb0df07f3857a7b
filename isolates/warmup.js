// What first events commonly do: warmup.go runs it before the snapshot is made.

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
