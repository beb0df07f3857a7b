// toJSON on Object.prototype
// outcome: exception, ok
// kind: task

export default { task() { Object.prototype.toJSON = function () { return "changed"; }; return { a: 1 }; } };
