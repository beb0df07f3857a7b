// fetch with a body that never ends
// outcome: ok, cpu

export default { async fetch() { try { await fetch("http://127.0.0.1:1/", { method: "POST", duplex: "half", body: new ReadableStream({ pull(c) { c.enqueue(new Uint8Array(1 << 20)); } }) }); } catch {} return new Response("ok"); } };
