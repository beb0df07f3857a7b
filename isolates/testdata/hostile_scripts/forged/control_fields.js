// an answer with every field the runtime might have
// outcome: exception

export default { fetch() { return { id: 1, over: true, answered: true, waiting: 0, kind: 1, run: {}, op: 2, status: 200, headers: [], source: "x", stream: null, used: false, TOKEN: {}, type: "default" }; } };
