// a default export whose handlers are getters that throw
// outcome: exception

export default { get fetch() { throw new Error("getter"); } };
