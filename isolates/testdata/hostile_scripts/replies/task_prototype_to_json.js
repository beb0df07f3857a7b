// toJSON on Object.prototype
// outcome: ok
// kind: task

export default { task() { Object.prototype.toJSON = function () { return "changed"; }; return { a: 1 }; } };
