// The handler with the Request and Response of the platform.

import handler from "../workers/order.mjs";

const headers = { "content-type": "application/json" };
const ctx = { waitUntil() {} };

export async function answer(owner, data) {
  const request = new Request(`http://order.${owner}/`, { method: "POST", headers, body: data });
  const response = await handler.fetch(request, {}, ctx);
  return new Uint8Array(await response.arrayBuffer());
}
