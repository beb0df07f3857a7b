// Runs ../workers/web.mjs with bun serve.
import handler from "../workers/web.mjs";

Bun.serve({ hostname: "127.0.0.1", port: Number(process.env.PORT), fetch: handler.fetch });
