/** @jsxRuntime automatic */
/** @jsxImportSource hono/jsx */
// An API on Hono with the middleware that leans on the platform: cookies, JWT, streams, compression, context storage.
import { Hono } from "hono";
import { basicAuth } from "hono/basic-auth";
import { bodyLimit } from "hono/body-limit";
import { compress } from "hono/compress";
import { contextStorage, getContext } from "hono/context-storage";
import { deleteCookie, getCookie, getSignedCookie, setCookie, setSignedCookie } from "hono/cookie";
import { cors } from "hono/cors";
import { etag } from "hono/etag";
import { HTTPException } from "hono/http-exception";
import { jwt, sign } from "hono/jwt";
import { requestId } from "hono/request-id";
import { secureHeaders } from "hono/secure-headers";
import { stream, streamSSE, streamText } from "hono/streaming";
import { timeout } from "hono/timeout";
import { timing } from "hono/timing";
import { validator } from "hono/validator";

type Env = { Bindings: { SECRET: string }; Variables: { user: string } };

const app = new Hono<Env>();
app.use(requestId(), timing(), contextStorage());
app.use("/api/*", cors({ origin: "https://app.example", allowMethods: ["GET", "PUT"] }), secureHeaders());

app.get("/", (c) => c.text("hello"));
app.get("/users/:id{[0-9]+}", (c) => c.json({ id: Number(c.req.param("id")), q: c.req.queries("q") ?? [] }));
app.get("/page", (c) => c.html(<main class="x">{"<escaped> & "}<b>{c.env.SECRET.length}</b></main>));
app.all("/api/echo", async (c) => c.json({
  method: c.req.method, type: c.req.header("content-type") ?? null, body: await c.req.text(), url: c.req.url,
}));

const admin = new Hono<Env>();
admin.use(basicAuth({ username: "ada", password: "lovelace" }));
admin.get("/", (c) => c.text("in"));
app.route("/admin", admin);

app.use("/me", async (c, next) => {
  await jwt({ secret: c.env.SECRET, alg: "HS256" })(c as never, next);
});
app.get("/me", (c) => c.json(c.get("jwtPayload" as never)));
app.get("/login", async (c) => c.text(await sign({ sub: "ada" }, c.env.SECRET, "HS256")));

app.get("/cookies", async (c) => {
  setCookie(c, "theme", getCookie(c, "theme") ?? "dark", { path: "/", httpOnly: true, sameSite: "Lax", maxAge: 60 });
  await setSignedCookie(c, "user", "ada, l", c.env.SECRET);
  deleteCookie(c, "old");
  return c.json({ all: getCookie(c) });
});
app.get("/cookies/signed", async (c) => c.json({ user: await getSignedCookie(c, c.env.SECRET, "user") }));

app.post("/orders",
  validator("json", (value: { count?: unknown }, c) => {
    if (typeof value.count !== "number") return c.json({ error: "count is a number" }, 422);
    return { count: value.count };
  }),
  (c) => c.json({ ordered: c.req.valid("json").count }, 201));
app.post("/upload", bodyLimit({ maxSize: 1000, onError: (c) => c.text("too long", 413) }), async (c) => {
  const form = await c.req.parseBody({ all: true });
  const file = form.file as File;
  return c.json({ name: file.name, type: file.type, size: file.size, text: await file.text(), tags: form.tag });
});

app.get("/stream", (c) => stream(c, async (s) => {
  await s.write(new Uint8Array([104, 105, 32]));
  await s.pipe(new Blob(["from a blob"]).stream());
}));
app.get("/text", (c) => streamText(c, async (s) => {
  for (let i = 0; i < 3; i++) {
    await s.writeln(`line ${i}`);
    await s.sleep(2);
  }
}));
app.get("/sse", (c) => streamSSE(c, async (s) => {
  for (let id = 0; id < 2; id++) await s.writeSSE({ id: String(id), event: "tick", data: JSON.stringify({ id }) });
}));
app.get("/etag", etag(), (c) => c.text("the same each time"));
app.get("/zip", compress({ threshold: 10 }), (c) => c.text("again and ".repeat(500)));
app.get("/slow", timeout(20), async () => new Promise<Response>(() => setTimeout(() => {}, 1000)));
app.get("/later", (c) => {
  c.executionCtx.waitUntil(Promise.resolve().then(() => console.log("later")));
  return c.body(null, 204);
});
app.use("/who", async (c, next) => { c.set("user", c.req.query("name") ?? "nobody"); await next(); });
app.get("/who", async (c) => {
  await new Promise((resolve) => setTimeout(resolve, 5));
  return c.text(`${getContext<Env>().var.user} ${await new Promise<string>((ok) => queueMicrotask(() => ok(getContext<Env>().var.user)))}`);
});

app.get("/teapot", () => { throw new HTTPException(418, { message: "short and stout" }); });
app.get("/broken", () => { throw new Error("broken"); });
app.onError((error, c) => error instanceof HTTPException ? error.getResponse() : c.json({ error: error.message }, 500));
app.notFound((c) => c.json({ missing: c.req.path }, 404));

export default app;
