import { AutoRouter, StatusError, cors, error, html, json, text, withContent, withParams } from "itty-router";

const { preflight, corsify } = cors({ origin: "https://app.example", allowMethods: ["GET", "POST"], credentials: true });
// corsify of 6.0.0 forgets the status.
const open = (response, request) => {
  const { body, headers } = corsify(response, request);
  return new Response(body, { status: response.status, headers });
};
const router = AutoRouter({ base: "/v1", before: [preflight, withParams], finally: [open], missing: () => error(404, "no such route") });

router
  .get("/todos/:id", ({ id, query }) => ({ id, query }))
  .get("/files/:path+", ({ params }) => text(params.path))
  .get("/html", () => html("<p>hi</p>"))
  .post("/todos", withContent, ({ content }) => json({ made: content instanceof FormData ? [...content] : content }, { status: 201 }))
  .get("/throws", () => { throw new StatusError(409, { error: "taken", field: "name" }); })
  .get("/broken", () => { null.x; })
  .get("/env/:name", ({ name }, env, ctx) => ({ value: env[name], ctx: typeof ctx.waitUntil }));

export default router;
