// a thousand channels that answer each message
// outcome: cpu, memory, exception

export default { async fetch() { const all = []; for (let i = 0; i < 1000; i++) { const c = new BroadcastChannel("x"); c.onmessage = () => c.postMessage(new Array(100).fill(0)); all.push(c); } all[0].postMessage(1); await new Promise(() => {}); } };
