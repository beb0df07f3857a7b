// encryption in a loop, each result fed back
// outcome: cpu

export default { async fetch() { const k = await crypto.subtle.generateKey({ name: "AES-CBC", length: 256 }, false, ["encrypt"]); let d = new Uint8Array(1 << 20); for (;;) d = await crypto.subtle.encrypt({ name: "AES-CBC", iv: new Uint8Array(16) }, k, d); } };
