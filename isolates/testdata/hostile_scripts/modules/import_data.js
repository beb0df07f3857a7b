// an import of a data: URL
// outcome: ok

export default { async fetch() { try { await import("data:text/javascript,for(;;);"); } catch { return new Response("ok"); } return new Response("had it"); } };
