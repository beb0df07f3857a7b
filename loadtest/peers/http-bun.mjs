// Runs a file of ../workers with bun serve.
const { default: handler } = await import(`../workers/${process.env.HANDLER}.mjs`);

Bun.serve({ hostname: "127.0.0.1", port: Number(process.env.PORT), fetch: handler.fetch });
