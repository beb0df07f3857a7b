// transfer to ever larger buffers
// outcome: exception, cpu

export default { fetch() { let b = new ArrayBuffer(1 << 20); const kept = []; for (;;) { b = b.transfer(b.byteLength * 2); kept.push(b); } } };
