// a task result whose toJSON never returns
// outcome: cpu
// kind: task

export default { task() { return { toJSON() { for (;;); } }; } };
