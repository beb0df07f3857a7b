// TextDecoder of the largest buffer, kept
// outcome: exception, memory, cpu

export default { fetch() { const d = new TextDecoder("utf-8"), d16 = new TextDecoder("utf-16le"), b = new Uint8Array(40 << 20).fill(97), a = []; for (;;) a.push(d.decode(b), d16.decode(b)); } };
