// algorithms and keys that are proxies and getters that loop
// outcome: cpu

export default { async fetch() { await crypto.subtle.digest({ get name() { for (;;); } }, new Uint8Array(1)); return new Response("ok"); } };
