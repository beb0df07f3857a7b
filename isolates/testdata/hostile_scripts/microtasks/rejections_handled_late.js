// rejections that are handled after all, in reverse order
// outcome: ok

export default { async fetch() { const a = []; for (let i = 0; i < 20000; i++) a.push(Promise.reject(i)); for (const p of a.reverse()) p.catch(() => {}); return new Response("ok"); } };
