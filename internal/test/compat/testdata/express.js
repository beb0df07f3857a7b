// An app of express as its authors wrote it, and a client of node:http, of which node-fetch makes its own.
import { httpServerHandler } from "cloudflare:node";
import express from "express";
import nodeFetch from "node-fetch";
import http from "node:http";

const app = express();
app.set("etag", "weak");
app.use((req, res, next) => {
  res.setHeader("x-first", "yes");
  next();
});
app.use(express.json(), express.urlencoded({ extended: true }), express.text());
app.get("/hello/:name", (req, res) => res.send(`hello ${req.params.name} ${req.query.greeting ?? ""} ${req.protocol} ${req.hostname}`));
app.post("/json", (req, res) => res.status(201).json({ got: req.body, type: req.get("content-type"), ip: typeof req.ip }));
app.post("/form", (req, res) => res.cookie("a", "b c").send(req.body));
app.get("/away", (req, res) => res.redirect(303, "/hello/you"));
app.get("/lines", async (req, res) => {
  res.type("text/plain");
  for (let i = 0; i < 3; i++) {
    res.write(`line ${i}\n`);
    await new Promise((done) => setTimeout(done, 1));
  }
  res.end();
});
app.get("/large", (req, res) => res.send("x".repeat(1_000_000)));
app.get("/broken", () => { throw new Error("mine"); });
app.get("/later", async () => { throw Object.assign(new Error("mine"), { status: 418 }); });
app.get("/client", (req, res, next) => {
  http.get(req.query.url, { headers: { "X-From": "express" } }, (answer) => {
    res.status(answer.statusCode).set("x-type", answer.headers["content-type"]);
    answer.pipe(res);
  }).on("error", next);
});
app.get("/node-fetch", async (req, res) => {
  const answer = await nodeFetch(req.query.url, { method: "POST", body: "sent", headers: { "X-From": "node-fetch" }, redirect: "manual" });
  res.json([answer.status, await answer.text(), answer.headers.get("content-type")]);
});
app.use((error, req, res, next) => {
  if (req.path === "/broken") next(error);
  else res.status(error.status ?? 500).send(`${error.code ?? ""} ${error.message}`);
});
app.listen(3000);

export default httpServerHandler({ port: 3000 });
