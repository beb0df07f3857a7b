// messages to a port that nobody reads
// outcome: cpu, memory, exception

export default { fetch() { const { port1 } = new MessageChannel(); for (;;) port1.postMessage(new Array(100).fill(0)); } };
