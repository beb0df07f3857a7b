// a result that contains itself
// outcome: exception
// kind: task

export default { task() { const a = {}; a.a = a; return a; } };
