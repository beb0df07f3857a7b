// every global deleted
// outcome: ok
// events: 2

const R = Response;
const names = Object.getOwnPropertyNames(globalThis);
export default { fetch() { for (const k of names) try { delete globalThis[k]; } catch {} return new R("ok"); } };
