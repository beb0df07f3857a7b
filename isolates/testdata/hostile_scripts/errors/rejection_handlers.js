// an unhandledrejection listener that rejects again
// outcome: ok

export default { async fetch() { addEventListener("unhandledrejection", () => { Promise.reject(new Error("again")); }); Promise.reject(new Error("first")); await new Promise((f) => setTimeout(f, 20)); return new Response("ok"); } };
