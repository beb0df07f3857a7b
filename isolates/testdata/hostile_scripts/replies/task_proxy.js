// a Proxy as a task's result
// outcome: exception
// kind: task

export default { task() { return new Proxy({}, { getOwnPropertyDescriptor() { throw new Error("trap"); }, ownKeys() { throw new Error("trap"); } }); } };
