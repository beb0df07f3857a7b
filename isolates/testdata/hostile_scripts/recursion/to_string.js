// toString that converts itself
// outcome: exception

export default { fetch() { const o = { toString() { return `${o}`; } }; return new Response(`${o}`); } };
