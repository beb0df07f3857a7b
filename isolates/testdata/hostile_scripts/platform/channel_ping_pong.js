// two ports that answer each other for ever
// outcome: cpu, memory, timeout

export default { fetch() { const { port1, port2 } = new MessageChannel(); port1.onmessage = (e) => port1.postMessage(e.data); port2.onmessage = (e) => port2.postMessage(e.data); port1.postMessage("x".repeat(1000)); return new Promise(() => {}); } };
