// garbage that is collected before the events of eight others, each of whom keeps a little
// outcome: ok, cpu, memory
// workers: 9
// events: 12

let old = null;
const kept = [new Array(1 << 18).fill(0.5)];
export default { fetch() { old = Array.from({ length: 200 }, (_, i) => new Array(1 << 13).fill(i + 0.5)); return new Response("ok"); } };
