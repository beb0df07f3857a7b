// AbortSignal.any of all earlier ones
// outcome: cpu, memory

export default { fetch() { let s = new AbortController().signal; const a = []; for (;;) { s = AbortSignal.any([s, new AbortController().signal]); a.push(s); } } };
