// every constructor of functions is off
// outcome: ok

export default { fetch() {
  for (const C of [Function, (async () => {}).constructor, (function* () {}).constructor, (async function* () {}).constructor, Response.constructor, fetch.constructor.constructor, [].at.constructor]) {
    try { C("return 1")(); return new Response("ran"); } catch (e) { if (!(e instanceof EvalError)) throw e; }
  }
  try { setTimeout("1"); return new Response("ran"); } catch (e) { if (!(e instanceof TypeError)) throw e; }
  return new Response("ok");
} };
