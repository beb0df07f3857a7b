// node:events in Cloudflare's workerd and in Pinwheel. Each case returns what can be shown as JSON.
import EventEmitter, { EventEmitter as Named, EventEmitterAsyncResource, addAbortListener, captureRejectionSymbol, defaultMaxListeners, errorMonitor, getEventListeners, getMaxListeners, listenerCount, on, once, setMaxListeners } from "node:events";
import * as all from "node:events";

function show(v) {
  if (v instanceof Error) return { error: v.name, code: v.code };
  if (v === undefined) return "undefined";
  if (typeof v === "symbol") return v.toString();
  if (typeof v === "function") return `function ${v.name}`;
  if (Array.isArray(v)) return v.map(show);
  return v;
}

const tick = () => new Promise((done) => setTimeout(done, 1));
const make = () => { const e = new EventEmitter(), log = []; return [e, log, (name) => (...args) => { log.push([name, ...args]); }]; };

class Child extends EventEmitter { constructor() { super(); this.own = 1; } }
function Old() { EventEmitter.call(this); }
Old.prototype = Object.create(EventEmitter.prototype, { constructor: { value: Old } });

const cases = {
  "emit": () => { const [e, log, l] = make(); e.on("a", l("x")); return [e.emit("a", 1, 2, 3, 4), e.emit("b"), log]; },
  "order": () => { const [e, log, l] = make(); e.on("a", l(1)).addListener("a", l(2)).prependListener("a", l(0)).once("a", l(3)).prependOnceListener("a", l(-1)); e.emit("a"); e.emit("a"); return log; },
  "this": () => { const e = new EventEmitter(); let self; e.on("a", function () { self = this; }); e.emit("a"); return self === e; },
  "arrow": () => { const e = new EventEmitter(); let n = 0; const f = () => n++; e.on("a", f); e.on("a", f); e.off("a", f); e.emit("a"); return [n, e.listenerCount("a")]; },
  "remove while emitting": () => { const [e, log, l] = make(); const b = l("b"); e.on("a", () => { e.removeListener("a", b); }); e.on("a", b); e.emit("a"); e.emit("a"); return log; },
  "add while emitting": () => { const [e, log, l] = make(); e.on("a", () => { e.on("a", l("b")); }); e.emit("a"); e.emit("a"); return log.length; },
  "remove once": () => { const e = new EventEmitter(); const f = () => {}; e.once("a", f); e.removeListener("a", f); return e.listenerCount("a"); },
  "remove nothing": () => { const e = new EventEmitter(); return e.off("a", () => {}) === e; },
  "remove last of several": () => { const [e, log, l] = make(); const f = l("f"), g = l("g"); e.on("a", f); e.on("a", g); e.on("a", f); e.off("a", f); e.emit("a"); return log; },
  "removeAllListeners": () => { const e = new EventEmitter(); e.on("a", () => {}); e.on("b", () => {}); e.removeAllListeners("a"); const first = e.eventNames(); e.removeAllListeners(); return [first, e.eventNames()]; },
  "removeAllListeners with removeListener": () => { const e = new EventEmitter(), log = []; e.on("removeListener", (name) => log.push(String(name))); e.on("a", () => {}); e.on("b", () => {}); e.on("b", () => {}); e.removeAllListeners(); return [log, e.eventNames()]; },
  "removeAllListeners of one with removeListener": () => { const e = new EventEmitter(), log = []; e.on("removeListener", (name, f) => log.push([name, f.name])); e.on("a", function f1() {}); e.on("a", function f2() {}); e.removeAllListeners("a"); return log; },
  "newListener": () => { const e = new EventEmitter(), log = []; e.on("newListener", (name, f) => log.push([name, f.name, e.listenerCount("a")])); e.on("a", function f() {}); e.once("a", function g() {}); return log; },
  "newListener once": () => { const [e, log, l] = make(); e.once("newListener", () => { e.on("a", l("first")); }); e.on("a", l("second")); e.emit("a"); return log; },
  "removeListener event": () => { const e = new EventEmitter(), log = []; e.on("removeListener", (name, f) => log.push([name, f.name])); const f = () => {}; e.once("a", f); e.emit("a"); e.on("a", f); e.on("a", f); e.off("a", f); return log; },
  "listeners": () => { const e = new EventEmitter(); const f = function f() {}; e.on("a", f); e.once("a", f); return [e.listeners("a").map((x) => x === f), e.rawListeners("a").map((x) => x === f), e.rawListeners("a")[1].listener === f, e.listeners("none"), e.listeners("a") !== e.listeners("a")]; },
  "raw once": () => { const [e, log, l] = make(); e.once("a", l("x")); const [f] = e.rawListeners("a"); f(1); f(2); return [log, e.listenerCount("a")]; },
  "listenerCount": () => { const e = new EventEmitter(); const f = () => {}; e.on("a", f); e.on("a", () => {}); e.once("a", f); return [e.listenerCount("a"), e.listenerCount("a", f), e.listenerCount("b"), e.listenerCount("b", f), EventEmitter.listenerCount(e, "a"), listenerCount(e, "a")]; },
  "eventNames": () => { const e = new EventEmitter(); const s = Symbol("s"); e.on("a", () => {}); e.on(s, () => {}); e.on(5, () => {}); return e.eventNames().map(String); },
  "numbers": () => { const [e, log, l] = make(); e.on(5, l("five")); e.emit("5", 1); return log; },
  "proto names": () => { const [e, log, l] = make(); e.on("__proto__", l("p")); e.on("toString", l("t")); e.on("constructor", l("c")); e.emit("__proto__"); e.emit("toString"); e.emit("constructor"); e.emit("hasOwnProperty"); return [log, e.eventNames()]; },
  "error without listener": () => new EventEmitter().emit("error", new TypeError("mine")),
  "error text": () => new EventEmitter().emit("error", "text"),
  "error object": () => new EventEmitter().emit("error", { a: 1 }),
  "error null": () => new EventEmitter().emit("error", null),
  "error nothing": () => new EventEmitter().emit("error"),
  "error number": () => new EventEmitter().emit("error", 42),
  "error context": () => { try { new EventEmitter().emit("error", "text"); } catch (e) { return e.context; } },
  "error with listener": () => { const [e, log, l] = make(); e.on("error", l("e")); return [e.emit("error", 1), log]; },
  "errorMonitor": () => { const [e, log, l] = make(); e.on(errorMonitor, l("m")); try { e.emit("error", new Error("x")); } catch (x) { log.push(x.message); } return log.map((x) => (Array.isArray(x) ? [x[0], x[1].message] : x)); },
  "listener throws": () => { const e = new EventEmitter(); e.on("a", () => { throw new RangeError("r"); }); return e.emit("a"); },
  "max listeners": () => { const e = new EventEmitter(); const first = e.getMaxListeners(); e.setMaxListeners(3); return [first, e.getMaxListeners(), e.setMaxListeners(0) === e, getMaxListeners(e), getMaxListeners(new EventTarget()), defaultMaxListeners, EventEmitter.defaultMaxListeners]; },
  "max listeners wrong": () => new EventEmitter().setMaxListeners(-1),
  "max listeners NaN": () => new EventEmitter().setMaxListeners(NaN),
  "max listeners text": () => new EventEmitter().setMaxListeners("5"),
  "default wrong": () => { EventEmitter.defaultMaxListeners = -1; },
  "setMaxListeners of several": () => { const a = new EventEmitter(), b = new EventEmitter(); setMaxListeners(7, a, b, new EventTarget()); return [a.getMaxListeners(), b.getMaxListeners()]; },
  "setMaxListeners of a wrong one": () => setMaxListeners(7, {}),
  "on wrong": () => new EventEmitter().on("a", null),
  "on text": () => new EventEmitter().on("a", "f"),
  "once wrong": () => new EventEmitter().once("a", {}),
  "off wrong": () => new EventEmitter().off("a"),
  "prepend wrong": () => new EventEmitter().prependListener("a", 5),
  "without new": () => EventEmitter(),
  "class": () => { const c = new Child(); let n = 0; c.on("a", () => n++); c.emit("a"); return [n, c.own, c instanceof EventEmitter, Child.defaultMaxListeners]; },
  "old style": () => { const c = new Old(); let n = 0; c.on("a", () => n++); c.emit("a"); return [n, c instanceof EventEmitter]; },
  "mixed in": () => { const o = Object.assign({}, EventEmitter.prototype); let n = 0; o.on("a", () => n++); o.emit("a"); return n; },
  "without constructor": () => { const o = Object.create(EventEmitter.prototype); let n = 0; o.on("a", () => n++); o.emit("a"); return [n, o.eventNames()]; },
  "the same": () => [EventEmitter === Named, EventEmitter.EventEmitter === EventEmitter, all.default === EventEmitter, EventEmitter.usingDomains, EventEmitter.length, EventEmitter.name],
  "exports": () => Object.keys(all).sort(),
  "prototype": () => Object.keys(EventEmitter.prototype).sort(),
  "names": () => Object.keys(EventEmitter.prototype).sort().filter((k) => typeof EventEmitter.prototype[k] === "function").map((k) => [k, EventEmitter.prototype[k].name, EventEmitter.prototype[k].length]),
  "aliases": () => [EventEmitter.prototype.on === EventEmitter.prototype.addListener, EventEmitter.prototype.off === EventEmitter.prototype.removeListener],
  "keys of an emitter": () => Object.keys(new EventEmitter()),
  "_events": () => { const e = new EventEmitter(); const before = e._eventsCount; e.on("a", () => {}); return [before, e._eventsCount, typeof e._events.a, Object.getPrototypeOf(e._events)]; },
  "symbols": () => [errorMonitor, captureRejectionSymbol].map(String),
  "captureRejections": async () => { const e = new EventEmitter({ captureRejections: true }); const got = []; e.on("error", (x) => got.push(x.message)); e.on("a", async () => { throw new Error("async"); }); e.emit("a"); await tick(); return got; },
  "captureRejections by symbol": async () => { const e = new EventEmitter({ captureRejections: true }); const got = []; e[captureRejectionSymbol] = (x, name, ...args) => got.push([x.message, name, args]); e.on("a", async () => { throw new Error("async"); }); e.emit("a", 1, 2); await tick(); return got; },
  "captureRejections wrong": () => new EventEmitter({ captureRejections: 1 }),
  "captureRejections static": () => [EventEmitter.captureRejections],
  "captureRejections thenable": async () => { const e = new EventEmitter({ captureRejections: true }); const got = []; e.on("error", (x) => got.push(x.message)); e.on("a", () => ({ get then() { throw new Error("getter"); } })); e.emit("a"); await tick(); return got; },
  "once promise": async () => { const e = new EventEmitter(); const p = once(e, "a"); e.emit("a", 1, 2); return [await p, e.eventNames()]; },
  "once error": async () => { const e = new EventEmitter(); const p = once(e, "a"); e.emit("error", new Error("mine")); return p.catch((x) => [x.message, e.eventNames()]); },
  "once of error": async () => { const e = new EventEmitter(); const p = once(e, "error"); e.emit("error", new Error("mine")); return (await p)[0].message; },
  "once aborted": async () => once(new EventEmitter(), "a", { signal: AbortSignal.abort() }),
  "once abort": async () => { const c = new AbortController(), e = new EventEmitter(); const p = once(e, "a", { signal: c.signal }); c.abort(new Error("why")); return p.catch((x) => [x.name, x.code, x.message, x.cause?.message, e.eventNames()]); },
  "once of a target": async () => { const t = new EventTarget(); const p = once(t, "a"); t.dispatchEvent(new Event("a")); return (await p)[0].type; },
  "once of nothing": async () => once({}, "a"),
  "once wrong options": async () => once(new EventEmitter(), "a", 5),
  "once wrong signal": async () => once(new EventEmitter(), "a", { signal: 5 }),
  "on iterator": async () => { const e = new EventEmitter(); setTimeout(() => { e.emit("a", 1); e.emit("a", 2, 3); }, 1); const got = []; for await (const x of on(e, "a")) { got.push(x); if (got.length === 2) break; } return [got, e.eventNames()]; },
  "on iterator error": async () => { const e = new EventEmitter(); setTimeout(() => { e.emit("a", 1); e.emit("error", new Error("mine")); }, 1); const got = []; try { for await (const x of on(e, "a")) got.push(x); } catch (x) { got.push(x.message); } return [got, e.eventNames()]; },
  "on iterator close": async () => { const e = new EventEmitter(); setTimeout(() => { e.emit("a", 1); e.emit("end"); }, 1); const got = []; for await (const x of on(e, "a", { close: ["end"] })) got.push(x); return [got, e.eventNames()]; },
  "on iterator abort": async () => { const e = new EventEmitter(), c = new AbortController(); setTimeout(() => { e.emit("a", 1); c.abort(); }, 1); const got = []; try { for await (const x of on(e, "a", { signal: c.signal })) got.push(x); } catch (x) { got.push([x.name, x.code]); } return got; },
  "on iterator aborted": () => on(new EventEmitter(), "a", { signal: AbortSignal.abort() }),
  "on iterator by hand": async () => { const e = new EventEmitter(); const it = on(e, "a"); const p = [it.next(), it.next()]; e.emit("a", 1); e.emit("a", 2); const got = await Promise.all(p); const end = await it.return(); return [got, end, await it.next(), typeof it[Symbol.asyncIterator], it[Symbol.asyncIterator]() === it]; },
  "on iterator throw": async () => { const it = on(new EventEmitter(), "a"); it.throw(new Error("mine")); return it.next().catch((x) => x.message); },
  "on iterator throw wrong": () => on(new EventEmitter(), "a").throw("text"),
  "on of a target": async () => { const t = new EventTarget(); setTimeout(() => t.dispatchEvent(new Event("a")), 1); for await (const [x] of on(t, "a")) return x.type; },
  "on of nothing": () => on({}, "a"),
  "getEventListeners": () => { const e = new EventEmitter(), t = new EventTarget(); const f = () => {}; e.on("a", f); t.addEventListener("a", f); return [getEventListeners(e, "a")[0] === f, getEventListeners(t, "a").length, getEventListeners(t, "b")]; },
  "getEventListeners wrong": () => getEventListeners({}, "a"),
  "getMaxListeners wrong": () => getMaxListeners({}),
  "addAbortListener": () => { const c = new AbortController(); let n = 0; const d = addAbortListener(c.signal, () => n++); c.abort(); return [n, typeof d[Symbol.dispose]]; },
  "addAbortListener removed": () => { const c = new AbortController(); let n = 0; const d = addAbortListener(c.signal, () => n++); d[Symbol.dispose](); c.abort(); return n; },
  "addAbortListener aborted": async () => { let n = 0; addAbortListener(AbortSignal.abort(), () => n++); const before = n; await tick(); return [before, n]; },
  "addAbortListener wrong": () => addAbortListener(undefined, () => {}),
  "addAbortListener wrong listener": () => addAbortListener(new AbortController().signal, 5),
  "async resource": () => { const e = new EventEmitterAsyncResource({ name: "mine" }); let n = 0; e.on("a", (x) => { n = x; }); return [e.emit("a", 7), n, e instanceof EventEmitter, typeof e.asyncId, typeof e.asyncResource, e.asyncResource.eventEmitter === e]; },
};

export default {
  async fetch() {
    const answers = {};
    for (const [name, run] of Object.entries(cases)) {
      try {
        answers[name] = show(await Promise.race([run(), new Promise((done) => setTimeout(done, 2000, "no answer"))]));
      } catch (e) {
        answers[name] = { thrown: show(e) };
      }
    }
    return Response.json(answers);
  },
};
