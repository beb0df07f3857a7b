// A webhook receiver. The sender signs the body with a shared secret; a request with a good signature
// is answered with 202 at once, and its work is a task, which is retried if it fails and outlives a crash.
//
//   pinwheel secrets set acme/webhook WEBHOOK_SECRET
//   pinwheel deploy examples/webhook.js --owner acme
//
// For pinwheel dev, put WEBHOOK_SECRET=… into examples/.dev.vars.
//
// The signature is the header X-Signature-256: "sha256=" and the HMAC-SHA256 of the body in hex.
// webhook.pinwheel.json binds env.JOBS to this worker's own task handler; --queue JOBS=other sends the
// tasks to another worker of the same owner.

const encoder = new TextEncoder();

export default {
  async fetch(request, env, ctx) {
    if (request.method !== "POST") {
      return Response.json({ error: "send a POST" }, { status: 405, headers: { allow: "POST" } });
    }
    const body = new Uint8Array(await request.arrayBuffer());
    // The signature first: nothing is parsed that a stranger sent.
    if (!(await isSigned(body, request.headers.get("x-signature-256"), env.WEBHOOK_SECRET))) {
      return Response.json({ error: "the signature does not match the body" }, { status: 401 });
    }
    let message;
    try {
      message = JSON.parse(new TextDecoder().decode(body));
    } catch {
      return Response.json({ error: "the body is not JSON" }, { status: 400 });
    }
    const id = request.headers.get("x-delivery-id") ?? crypto.randomUUID();
    ctx.waitUntil(env.JOBS.send({ id, message }));
    return Response.json({ accepted: id }, { status: 202 });
  },

  // Runs once for each accepted message, or more often: after a crash it runs again, with the same id.
  async task(event) {
    const { id, message } = event.payload;
    console.log(`processing ${message?.type ?? "message"} ${id}, attempt ${event.attempt}`);
    return { id, type: message?.type ?? null, keys: Object.keys(message ?? {}).sort() };
  },
};

async function isSigned(body, header, secret) {
  const signature = fromHex(header ?? "");
  if (signature === null || !secret) {
    return false;
  }
  const key = await crypto.subtle.importKey("raw", encoder.encode(secret), { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
  // verify compares in constant time: how long it takes does not tell how much of a guess is right.
  return crypto.subtle.verify("HMAC", key, signature, body);
}

// fromHex reads "sha256=<64 hex digits>"; null when it is anything else.
function fromHex(header) {
  const match = /^sha256=([0-9a-f]{64})$/i.exec(header);
  if (match === null) {
    return null;
  }
  return Uint8Array.from(match[1].match(/../g), (pair) => parseInt(pair, 16));
}
