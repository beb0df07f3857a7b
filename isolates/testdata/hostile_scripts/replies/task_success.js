// success by a getter that throws at the second look
// outcome: ok
// kind: task

export default { task() { let n = 0; return { get success() { if (n++) throw new Error("again"); return true; }, data: "ok" }; } };
