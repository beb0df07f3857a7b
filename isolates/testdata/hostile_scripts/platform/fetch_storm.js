// a hundred thousand fetches at once
// outcome: cpu, memory, exception, ok

export default { async fetch() { const all = []; for (let i = 0; i < 1e5; i++) all.push(fetch("http://10.0.0.1/" + i).catch(() => 0)); await Promise.all(all); return new Response("ok"); } };
