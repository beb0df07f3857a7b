// fetch in a loop, each refused, for ever
// outcome: cpu

export default { async fetch() { for (;;) try { await fetch("http://127.0.0.1:1/"); } catch {} } };
