// a million channels, each sent through the last
// outcome: cpu, memory

export default { fetch() { let last = new MessageChannel(); for (let i = 0; i < 1e6; i++) { const c = new MessageChannel(); c.port1.postMessage(null, [last.port2]); last = c; } return new Response("ok"); } };
