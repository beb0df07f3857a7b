// @mode persistent
// @websocket
// Answers the clients of clients/http.mjs.

let gone = 0;

const pages = {
  "/echo": (request) => new Response(request.body, { headers: { "content-type": request.headers.get("content-type") ?? "", "x-method": request.method } }),
  "/json": async (request) => Response.json({ got: await request.json(), length: request.headers.get("content-length") }),
  "/form": async (request) => {
    const form = await request.formData();
    const file = form.get("file");
    return Response.json({ note: form.get("note"), name: file.name, type: file.type, size: file.size });
  },
  "/number": (_, url) => new Response(url.searchParams.get("n")),
  "/gzip": () => new Response(new Blob(["pinwheel ".repeat(10_000)]).stream().pipeThrough(new CompressionStream("gzip")), { headers: { "content-encoding": "gzip" } }),
  "/redirect": () => new Response(null, { status: 307, headers: { location: "echo" } }),
  "/empty": () => new Response(null, { status: 204 }),
  "/cookies": () => {
    const response = new Response("");
    response.headers.append("set-cookie", "a=1");
    response.headers.append("set-cookie", "b=2; path=/");
    return response;
  },
  "/endless": (request) => {
    request.signal.addEventListener("abort", () => gone++);
    return new Response(new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(10_000)) }));
  },
  "/gone": () => Response.json(gone),
  "/protocol": (request, url) => Response.json({ url: url.href, proto: request.headers.get("x-forwarded-proto") }),
  "/socket": socket,
};

// socket says what it hears: texts and bytes as they are, "close CODE REASON" closes, and "count N" sends N messages.
function socket(request) {
  const [client, server] = Object.values(new WebSocketPair());
  server.accept();
  server.send("hello");
  server.addEventListener("message", ({ data }) => {
    const [word, number, ...rest] = typeof data === "string" ? data.split(" ") : [];
    if (word === "close") server.close(Number(number), rest.join(" "));
    else if (word === "count") for (let i = 0; i < Number(number); i++) server.send(`message ${i}`);
    else server.send(data);
  });
  server.addEventListener("close", ({ code, reason }) => { closed.push(`${code} ${reason}`); });
  const headers = {};
  const wanted = request.headers.get("sec-websocket-protocol");
  if (wanted) headers["sec-websocket-protocol"] = wanted.split(",").at(-1).trim();
  return new Response(null, { status: 101, webSocket: client, headers });
}

const closed = [];
pages["/closed"] = () => Response.json(closed);

export default {
  fetch(request) {
    const url = new URL(request.url);
    const page = pages[url.pathname];
    return page ? page(request, url) : new Response("no such page", { status: 404 });
  },
};
