// counters and clocks without end
// outcome: ok

export default { fetch() { for (let i = 0; i < 2e4; i++) { console.count("c" + i); console.time("t" + i); } return new Response("ok"); } };
