// concat with a hundred thousand arguments
// outcome: cpu, memory

export default { fetch() { const a = Array.from({ length: 1e5 }, () => "x".repeat(1000)); for (;;) "".concat(...a); } };
