export {};

addEventListener("fetch", (event) => {
  event.waitUntil(Promise.resolve());
  event.respondWith(new Response(event.request.url));
});
addEventListener("task", (event) => {
  const attempt: number = event.attempt;
  event.respondWith({ success: true, attempt });
});
addEventListener("scheduled", (event) => event.waitUntil(fetch(`https://example.com/?at=${event.scheduledTime}&cron=${event.cron}`)));
addEventListener("unhandledrejection", (event) => console.error(event.reason));
