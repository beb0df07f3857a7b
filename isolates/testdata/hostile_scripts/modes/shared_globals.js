// globals that a shared context is left with
// outcome: ok
// mode: shared
// events: 3

export default { fetch() { for (const k of Object.getOwnPropertyNames(globalThis)) if (!/^(Response|globalThis|Object|RegExp)$/.test(k)) try { delete globalThis[k]; } catch {} return new Response("ok"); } };
