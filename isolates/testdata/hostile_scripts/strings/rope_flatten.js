// ropes of 2**29 characters, flattened
// outcome: cpu, memory, exception
// strays

export default { fetch() { let s = "ab"; for (let i = 0; i < 27; i++) s += s; const a = []; for (let i = 0; i < 20; i++) { const t = s + i; t.charCodeAt(5); /x/.test(t); a.push(t); } return new Response("ok"); } };
