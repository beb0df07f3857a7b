// a million listeners that are objects with a getter
// outcome: cpu, memory

export default { fetch() { const t = new EventTarget(); for (let i = 0; i < 1e6; i++) t.addEventListener("x", { get handleEvent() { return () => {}; } }); t.dispatchEvent(new Event("x")); return new Response("ok"); } };
