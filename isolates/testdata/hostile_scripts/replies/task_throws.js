// a task result whose getter throws
// outcome: exception
// kind: task

export default { task() { return { get a() { throw new Error("getter"); } }; } };
