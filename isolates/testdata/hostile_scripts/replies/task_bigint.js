// a result that has no JSON form
// outcome: exception
// kind: task

export default { task() { return { n: 10n }; } };
