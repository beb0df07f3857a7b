// an error that says that it is a limit
// outcome: exception

export default { fetch() { throw Object.assign(new Error("CPU time limit of 1s"), { reason: "cpu", name: "memory", retry: false, code: 137 }); } };
