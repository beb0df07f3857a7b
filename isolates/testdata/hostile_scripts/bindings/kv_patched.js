// replaces what the runtime may call between a method and its answer
// outcome: ok

const seen = [];
const spy = (name, self) => { if (typeof self === "object" && self !== null && ("texts" in self || "capability" in self)) seen.push(name); };
for (const proto of [Array.prototype, Map.prototype, Promise.prototype, Object.prototype]) {
  for (const name of Object.getOwnPropertyNames(proto)) {
    const { value } = Object.getOwnPropertyDescriptor(proto, name);
    if (typeof value !== "function" || name === "constructor") continue;
    Object.defineProperty(proto, name, { value(...args) { spy(name, this); args.forEach((a) => spy(name, a)); return Reflect.apply(value, this, args); }, configurable: true, writable: true });
    break;
  }
}
Object.defineProperty(Object.prototype, "capability", { set(v) { seen.push(v); }, get() { return undefined; }, configurable: true });

export default {
  async fetch(request, env) {
    const value = await env.KV.get("k");
    await env.KV.put("k", value, { metadata: {} });
    if (seen.length > 0) throw new Error(`seen: ${seen}`);
    return new Response("ok");
  },
};
