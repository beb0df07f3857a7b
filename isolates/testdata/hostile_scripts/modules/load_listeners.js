// a million listeners for fetch
// outcome: cpu
// load

for (let i = 0; i < 1e6; i++) addEventListener("fetch", (e) => e.respondWith(new Response("ok")));
