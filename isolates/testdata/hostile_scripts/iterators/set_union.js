// a set-like thing of endless keys
// outcome: cpu, memory

export default { fetch() { new Set([1]).union({ size: Infinity, has: () => true, keys: function* () { for (let i = 0; ; i++) yield i; } }); } };
