// large messages to many channels, of which none gets to read
// outcome: memory, cpu, exception

export default { fetch() { const all = Array.from({ length: 1000 }, () => new BroadcastChannel("x")); for (;;) all[0].postMessage({ text: "x".repeat(1e5), bytes: new Uint8Array(1e5) }); } };
