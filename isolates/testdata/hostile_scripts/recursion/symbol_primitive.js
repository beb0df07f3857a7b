// Symbol.toPrimitive that converts itself
// outcome: exception

export default { fetch() { const o = { [Symbol.toPrimitive]() { return `${o}`; } }; return new Response(`${o}`); } };
