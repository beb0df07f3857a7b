// event.retry with delays that are none
// outcome: exception
// kind: task

export default { task(event) { for (const d of [NaN, -1, Infinity, "x", { valueOf() { throw 1; } }, 1n]) { try { event.retry({ delaySeconds: d }); return "took it"; } catch {} } event.retry({ delaySeconds: 1e300 }); throw new Error("asked"); } };
