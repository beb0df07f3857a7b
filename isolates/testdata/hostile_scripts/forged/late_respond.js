// respondWith of an event that is over
// outcome: ok, exception
// events: 2

let old;
addEventListener("fetch", (e) => { if (old) { old.respondWith(new Response("to the old one")); } old = e; e.respondWith(new Response("ok")); });
