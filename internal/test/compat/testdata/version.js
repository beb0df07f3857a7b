// The description of the version, for Cloudflare's workerd in miniflare and for Pinwheel.
export default {
  fetch(request, env) {
    const { VERSION } = env;
    const types = Object.fromEntries(Object.entries(VERSION).map(([name, value]) => [name, typeof value]));
    return Response.json({ types, tag: VERSION.tag, isTime: new Date(VERSION.timestamp).toISOString() === VERSION.timestamp, isPlain: Object.getPrototypeOf(VERSION) === Object.prototype });
  },
};
