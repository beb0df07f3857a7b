// an unhandledrejection listener that rejects
// outcome: ok

addEventListener("unhandledrejection", () => { Promise.reject(1); });
export default { fetch() { Promise.reject(0); return new Response("ok"); } };
