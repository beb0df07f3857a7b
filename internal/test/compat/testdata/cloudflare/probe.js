// The program that asks for each of Cloudflare's names, here and in miniflare. The test puts the expressions of
// names.json in place of PROBES.
import * as workers from "cloudflare:workers";
import { AsyncLocalStorage } from "node:async_hooks";

const attempt = (f) => { try { return f(); } catch (e) { return e.constructor.name; } };
const top = {
  env: attempt(() => workers.env.GREETING),
  waitUntil: attempt(() => workers.waitUntil(Promise.resolve())),
  uuid: attempt(() => typeof crypto.randomUUID()),
  timer: attempt(() => { clearTimeout(setTimeout(() => {}, 1)); return "ok"; }),
};
const bytes = (...list) => new Uint8Array(list);
const hex = (buffer) => [...new Uint8Array(buffer)].map((b) => b.toString(16).padStart(2, "0")).join("");
const failure = (promise) => promise.then(() => "ok", (e) => `${e.constructor.name}: ${e.message}`);
const names = (object) => Object.keys(object).length;

export class Named extends workers.WorkerEntrypoint {
  hello() { return "hello"; }
}

export default class extends workers.WorkerEntrypoint {
  own = 0;
  async fetch(request) {
    const { env, ctx } = this;
    if (new URL(request.url).pathname.endsWith("/length")) {
      const { readable, writable } = new FixedLengthStream(5);
      ctx.waitUntil(new Response("hello").body.pipeTo(writable));
      return new Response(readable);
    }
    const probes = PROBES;
    const answers = [];
    for (const probe of probes) {
      let answer;
      try {
        answer = await Promise.race([probe.call(this), scheduler.wait(2000).then(() => "no answer")]);
      } catch (e) {
        answer = `${e.constructor.name}: ${e.message}`;
      }
      answers.push(answer === undefined ? "undefined" : answer);
    }
    return Response.json(answers);
  }
}
