// small objects kept in an array
// outcome: cpu, memory

export default { fetch() { const a = []; for (let i = 0;; i++) a.push({ i, next: a[i - 1] }); } };
