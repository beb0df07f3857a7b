// What a handler can reach, and what frames of stacks show, is walked; what of it is the runtime's is told.
export default { async fetch(request, env, ctx) {
  const found = [], frames = await sites();
  const known = new Set();
  walk([["globalThis", globalThis]], (path, v) => known.add(v));
  const marks = { host: ["send", "ask", "entry"], internal: ["entryOps", "sendOps", "TOKEN"], primordials: ["uncurryThis", "ReflectApply"], ops: ["FETCH_EVENT", "TASK_EVENT"], "a run": ["answered", "waiting", "malformed"] };
  const visit = (path, v) => {
    const is = control(v, undefined, "");
    if (is !== undefined) found.push(`${path} is ${is}`);
    const keys = Reflect.ownKeys(v);
    for (const [name, names] of Object.entries(marks)) if (names.every((k) => keys.includes(k))) found.push(`${path} is ${name}`);
    const name = Reflect.getOwnPropertyDescriptor(v, "name")?.value, tag = Reflect.getOwnPropertyDescriptor(v, Symbol.toStringTag)?.value;
    if (["SharedArrayBuffer", "Atomics"].some((x) => x === name || x === tag)) found.push(`${path} is shared memory`);
  };
  const n = walk([...samples(request, env, ctx), ["frames", frames]], visit);
  let calls = 0;
  for (const s of frames) {
    if (typeof s?.getFunction !== "function") continue;
    calls++;
    for (const get of Object.getOwnPropertyNames(Object.getPrototypeOf(s))) {
      if (!/^(get|is|to)/.test(get)) continue;
      const v = s[get]();
      if (v !== null && (typeof v === "object" || typeof v === "function") && v !== globalThis && !Array.isArray(v)) found.push(`${get} of ${s}`);
    }
  }
  for (const name of ["host", "internal", "primordials"]) if (name in globalThis) found.push(name);
  // No code from text, hence no sloppy functions, whose callers and arguments could be looked at.
  const AsyncFunction = (async () => {}).constructor, Generator = (function* () {}).constructor;
  for (const make of [() => Function("return 1")(), () => (0, eval)("1 + 1"), () => AsyncFunction("1"), () => Generator("1"), () => setTimeout("1"), () => new Function.prototype.constructor("1")]) {
    try { make(); found.push(`ran text: ${make}`); } catch { /* refused */ }
  }
  const strict = function () { return [strict.caller, strict.arguments]; };
  try { found.push(`caller ${strict()}`); } catch { /* refused */ }
  return Response.json({ found, n, calls });
} };
