// things with hostile Symbol.toStringTag and constructor, logged
// outcome: ok

export default { fetch() { for (const o of [{ get [Symbol.toStringTag]() { throw 1; } }, { get constructor() { throw 1; } }, Object.create({ get constructor() { for (let i = 0; i < 1e3; i++); return { get name() { throw 2; } }; } })]) console.log(o); return new Response("ok"); } };
