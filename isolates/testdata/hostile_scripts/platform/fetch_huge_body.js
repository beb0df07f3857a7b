// fetch() with a body of 60 MB
// outcome: cpu, exception, memory
// strays

export default { async fetch() { for (let i = 0; i < 20; i++) fetch("http://10.0.0.1/", { method: "POST", body: "x".repeat(6e7) }).catch(() => 0); return new Response("ok"); } };
