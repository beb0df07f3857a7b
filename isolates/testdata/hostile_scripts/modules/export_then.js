// an export called then
// outcome: ok

export function then(f) { for (;;); }
export default { fetch() { return new Response("ok"); } };
