// seven workers fill their isolate and wait, so that the eighth is cut short for what they have
// outcome: ok, cpu, memory, timeout
// workers: 8
// events: 2

export default { async fetch() { const kept = []; for (let i = 0; i < 7; i++) { kept.push(new Array(1 << 18).fill(i + 0.5)); await new Promise((f) => setTimeout(f, 20)); } kept.push(new Array(1 << 22).fill(0.5)); await new Promise((f) => setTimeout(f, 50)); return new Response("ok"); } };
