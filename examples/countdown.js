// Server-sent events: a countdown that goes on for as long as somebody listens. A browser's EventSource behind any gateway
// reads it, and goes on where it was when its connection breaks.
//
//   pinwheel dev examples/countdown.js
//   pinwheel send fetch dev/countdown --path '/?from=5&everyMs=1000'
//
// A run has 30 s of wall-clock time unless its manifest gives it more (limits.wallMs).

export default {
  fetch(request) {
    const query = new URL(request.url).searchParams;
    const from = Number(query.get("from") ?? 10);
    const everyMs = Number(query.get("everyMs") ?? 1000);
    if (!Number.isSafeInteger(from) || from < 0 || !(everyMs >= 0)) {
      return Response.json({ error: "from and everyMs must be numbers from 0" }, { status: 400 });
    }
    // An EventSource that connects again says which event it has seen last.
    const seen = request.headers.get("last-event-id");
    let next = seen === null ? from : Number(seen) - 1;
    if (!(next >= 0)) {
      return new Response(null, { status: 204 }); // nothing is left: it need not come again
    }
    let first = true;
    const events = new ReadableStream({
      // pull is called when the listener has room for more, so a slow one is sent no more than it takes.
      async pull(controller) {
        if (first) controller.enqueue(`retry: ${everyMs}\n\n`);
        else await scheduler.wait(everyMs);
        first = false;
        controller.enqueue(event(next, next === 0 ? "done" : "tick", { left: next }));
        if (next-- === 0) controller.close();
      },
      // cancel is called when the listener has gone.
      cancel() {
        console.log(`nobody listens any more: ${next + 1} were left`);
      },
    });
    return new Response(events.pipeThrough(new TextEncoderStream()), {
      headers: { "content-type": "text/event-stream", "cache-control": "no-store" },
    });
  },
};

// event is one event on the wire: JSON has no line breaks, so its data is one line.
function event(id, type, data) {
  return `id: ${id}\nevent: ${type}\ndata: ${JSON.stringify(data)}\n\n`;
}
