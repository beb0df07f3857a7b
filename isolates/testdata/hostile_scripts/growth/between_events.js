// state kept from event to event
// outcome: ok, memory, cpu
// events: 12

const kept = [];
export default { fetch() { for (let i = 0; i < 2e6; i++) kept.push(i + 0.5); return new Response("ok"); } };
