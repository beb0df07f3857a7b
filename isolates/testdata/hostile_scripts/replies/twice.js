// respondWith twice, and answers late
// outcome: ok

addEventListener("fetch", (e) => { e.respondWith(new Response("ok")); try { e.respondWith(new Response("second")); } catch {} setTimeout(() => { try { e.respondWith(new Response("late")); } catch {} }, 1); });
