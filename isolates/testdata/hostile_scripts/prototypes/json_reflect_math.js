// JSON, Reflect, Math, Object and Symbol emptied
// outcome: ok
// events: 2

export default { fetch() { for (const o of [JSON, Reflect, Math, Object, Symbol, Number, Array, String, Date, Promise]) for (const k of Reflect.ownKeys?.(o) ?? []) try { delete o[k]; } catch {} return new Response("ok"); } };
