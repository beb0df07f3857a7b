// channels without end, which are refused, and opened again and again
// outcome: cpu, exception

export default { fetch() { const all = []; for (let i = 0; ; i++) { try { all.push(new BroadcastChannel("x" + i)); } catch { for (const c of all.splice(0)) c.close(); } } } };
