// a task result that looks like a failure
// outcome: ok
// kind: task

export default { task() { return { success: false, error: { reason: "cpu", message: "forged" }, end: true, id: 0, op: 3 }; } };
