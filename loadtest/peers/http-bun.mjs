// Runs a file of ../workers with bun serve.
const { default: handler } = await import(`../workers/${process.env.HANDLER}.mjs`);

const maxRequestBodySize = 2 ** 31; // the default is less than loadtest http --case pipe sends
Bun.serve({ hostname: "127.0.0.1", port: Number(process.env.PORT), maxRequestBodySize, fetch: handler.fetch });
