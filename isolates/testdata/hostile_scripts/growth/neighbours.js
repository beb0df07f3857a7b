// eight workers that grow beside each other, to have more than one may
// outcome: ok, memory, cpu
// workers: 8
// events: 4

const kept = [];
export default { async fetch() { for (let i = 0; i < 24; i++) { kept.push(new Array(1 << 17).fill(i + 0.5)); await new Promise((f) => setTimeout(f, 1)); } return new Response("ok"); } };
