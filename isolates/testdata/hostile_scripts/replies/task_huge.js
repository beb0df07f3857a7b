// a result of 300 MB
// outcome: cpu, memory, exception
// kind: task

export default { task() { return new Array(300).fill("x".repeat(1e6)); } };
