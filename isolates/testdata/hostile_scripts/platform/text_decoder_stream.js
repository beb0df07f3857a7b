// a decoder fed by the byte, for ever
// outcome: cpu

export default { fetch() { const d = new TextDecoder(), b = new Uint8Array([0xe2]); for (;;) d.decode(b, { stream: true }); } };
