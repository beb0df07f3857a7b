// a default export whose handlers are getters that throw
// outcome: exception, cpu

export default { get fetch() { throw new Error("getter"); } };
