// toString(3) of a BigInt of eight million bits
// outcome: cpu, memory

export default { fetch() { return new Response((1n << 8000000n).toString(3)); } };
