// console methods by the million, on detached receivers
// outcome: cpu

export default { fetch() { const { log, warn, error, info, debug } = console; for (let i = 0; i < 1e5; i++) { log.call(null, i); warn.call(1, i); error.apply(undefined, [i]); info(i); debug(i); } return new Response("ok"); } };
