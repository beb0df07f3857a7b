// an unhandledrejection listener that rejects
// outcome: ok, cpu, memory

addEventListener("unhandledrejection", () => { Promise.reject(1); });
export default { fetch() { Promise.reject(0); return new Response("ok"); } };
