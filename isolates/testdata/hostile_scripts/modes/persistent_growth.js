// a little more kept with every event
// outcome: ok, memory, cpu
// mode: persistent
// events: 40

const kept = [];
export default { fetch() { for (let i = 0; i < 3; i++) kept.push(new Array(1 << 18).fill(kept.length)); return new Response("ok"); } };
