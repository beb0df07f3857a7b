// Symbol.hasInstance that never returns
// outcome: cpu

export default { fetch() { return {} instanceof { [Symbol.hasInstance]() { for (;;); } }; } };
