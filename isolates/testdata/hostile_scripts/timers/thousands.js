// nine thousand timers, all for one moment
// outcome: ok

export default { fetch() { let n = 0; return new Promise((done) => { for (let i = 0; i < 9000; i++) setTimeout(() => { if (++n === 9000) done(new Response("ok")); }, 20); }); } };
