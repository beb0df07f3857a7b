// an abort listener that never returns
// outcome: cpu

export default { fetch() { const c = new AbortController(); c.signal.onabort = () => { for (;;); }; c.abort(); } };
