// a loop that catches the refusal and goes on
// outcome: cpu, memory

export default { fetch() { const a = []; for (;;) try { a.push(new Uint8Array(1 << 22).fill(1)); } catch {} } };
