// transfer keeps what is resizable; grown past the limit
// outcome: exception, cpu

export default { fetch() { const a = []; for (;;) { const b = new ArrayBuffer(1 << 20, { maxByteLength: 1 << 23 }).transfer(1 << 23); new Uint8Array(b).fill(1); a.push(b, b.transferToFixedLength()); } } };
