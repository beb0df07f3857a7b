// a name of 64 MB, in a class of that name
// outcome: memory, exception, cpu

export default { fetch() { const e = new Error("x"); e.name = "n".repeat(2 ** 26); Object.defineProperty(e, "constructor", { value: Object.defineProperty(class {}, "name", { value: "c".repeat(2 ** 26) }) }); throw e; } };
