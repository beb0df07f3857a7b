// Packages of values, collections, numbers, waiting and state.
import _, { debounce } from "lodash-es";
import lodash from "lodash";
import * as R from "ramda";
import * as remeda from "remeda";
import { enableMapSet, produce, produceWithPatches, enablePatches } from "immer";
import { concatMap, delay, from, lastValueFrom, map, Subject, toArray } from "rxjs";
import mitt from "mitt";
import { EventEmitter } from "eventemitter3";
import { createNanoEvents } from "nanoevents";
import pLimit from "p-limit";
import PQueue from "p-queue";
import pRetry, { AbortError } from "p-retry";
import semver from "semver";
import Big from "big.js";
import { Decimal } from "decimal.js";
import BigNumber from "bignumber.js";
import { all, create } from "mathjs";
import Color from "color";
import chroma from "chroma-js";
import Fuse from "fuse.js";
import MiniSearch from "minisearch";
import { LRUCache } from "lru-cache";
import { createActor, createMachine, assign } from "xstate";
import { createStore } from "zustand/vanilla";
import deepmerge from "deepmerge";
import equal from "fast-deep-equal";
import * as diff from "diff";
import { worker } from "./answers.mjs";

const people = [{ name: "Ada", age: 36 }, { name: "Bo", age: 20 }, { name: "Cy", age: 36 }];
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
enableMapSet();
enablePatches();

export const cases = {
  async "lodash-es"() {
    const calls = [];
    const late = debounce((n) => calls.push(n), 5);
    late(1), late(2);
    await wait(20);
    return [_.groupBy(people, "age"), _.chunk([1, 2, 3], 2), _.get({ a: [{ b: 1 }] }, "a[0].b"), _.cloneDeep({ d: new Date(0) }), _.camelCase("foo-bar ü"), calls];
  },
  lodash: () => [lodash.sortBy(people, ["age", "name"]), lodash.merge({ a: { b: 1 } }, { a: { c: 2 } }), lodash.words("fred, barney"), lodash.template, lodash.isPlainObject(Object.create(null))],
  ramda: () => [R.pipe(R.filter(R.propEq(36, "age")), R.pluck("name"))(people), R.assocPath(["a", "b"], 1, {}), R.curry((a, b) => a + b)(1)(2)],
  remeda: () => [remeda.pipe(people, remeda.sortBy([remeda.prop("name"), "desc"]), remeda.map((p) => p.name), remeda.take(2)), remeda.groupBy(people, (p) => p.age)],
  immer() {
    const [next, patches] = produceWithPatches({ list: [1], at: new Map([["a", 1]]) }, (d) => { d.list.push(2); d.at.set("b", 2); });
    return [next, patches, Object.isFrozen(next.list), produce(people, (d) => { d[0].age++; })[0].age];
  },
  async rxjs() {
    const got = [];
    const subject = new Subject();
    subject.pipe(map((n) => n * 2)).subscribe({ next: (n) => got.push(n), complete: () => got.push("end") });
    subject.next(1), subject.complete();
    return [await lastValueFrom(from([1, 2]).pipe(concatMap((n) => from([n, -n]).pipe(delay(1))), toArray())), got];
  },
  mitt() {
    const got = [], bus = mitt();
    bus.on("*", (type, e) => got.push(type, e));
    bus.emit("a", 1);
    return got;
  },
  eventemitter3() {
    const got = [], bus = new EventEmitter();
    bus.once("a", (n) => got.push(n));
    return [bus.emit("a", 1), bus.emit("a", 2), got, bus.listenerCount("a")];
  },
  nanoevents() {
    const got = [], bus = createNanoEvents(), off = bus.on("a", (n) => got.push(n));
    bus.emit("a", 1), off(), bus.emit("a", 2);
    return got;
  },
  async "p-limit"() {
    let most = 0, now = 0;
    const limit = pLimit(2);
    const done = await Promise.all([1, 2, 3, 4].map((n) => limit(async () => { most = Math.max(most, ++now); await wait(1); now--; return n; })));
    return [done, most];
  },
  async "p-queue"() {
    const got = [], queue = new PQueue({ concurrency: 1 });
    queue.add(async () => { await wait(1); got.push("low"); });
    queue.add(() => got.push("next"));
    queue.add(() => got.push("high"), { priority: 1 });
    await queue.onIdle();
    return [got, queue.size];
  },
  async "p-retry"() {
    let n = 0;
    const out = await pRetry(() => { if (++n < 3) throw new Error("not yet"); return n; }, { minTimeout: 1 });
    return [out, await pRetry(() => { throw new AbortError("no"); }).catch((e) => e.message)];
  },
  semver: () => [semver.satisfies("1.2.3-beta.1", "^1.2.3-alpha"), semver.inc("1.9.9", "minor"), semver.coerce("v2").version, semver.sort(["1.10.0", "1.9.0"]), semver.validRange("1.x || >=2")],
  "big.js": () => [Big("0.1").plus("0.2"), Big(2).sqrt().toFixed(30), Big("1e-30").times(3).toString()],
  "decimal.js": () => [new Decimal("0.1").plus("0.2"), Decimal.sin(1).toString(), new Decimal(2).pow("0.5").toSD(25), Decimal.set({ precision: 20 }).div(1, 3)],
  "bignumber.js": () => [new BigNumber("0.1").plus("0.2"), new BigNumber("ff", 16).toString(2), new BigNumber("1234567.891").toFormat(2)],
  mathjs() {
    const math = create(all);
    return [math.evaluate("sqrt(3^2 + 4^2) cm + 2 inch to cm"), math.derivative("x^2 + x", "x").toString(), math.det([[1, 2], [3, 4]]), math.format(math.inv([[2, 0], [0, 4]])), math.simplify("2x + x").toString()].map(String);
  },
  color: () => [Color("#1e90ff").lighten(0.2).hex(), Color.rgb(255, 0, 0).hsl().string(), Color("hsl(120, 50%, 50%)").contrast(Color("white"))],
  "chroma-js": () => [chroma.scale(["#fafa6e", "#2A4858"]).mode("lch").colors(4), chroma("hotpink").darken().css("oklch"), chroma.deltaE("#fff", "#000")],
  "fuse.js": () => [new Fuse(people, { keys: ["name"], includeScore: true, threshold: 0.6 }).search("Adaa").map((r) => [r.item.name, r.score])],
  minisearch() {
    const index = new MiniSearch({ fields: ["name", "text"], storeFields: ["name"] });
    index.addAll([{ id: 1, name: "Moby", text: "call me ishmael" }, { id: 2, name: "Zen", text: "i can see by my watch" }]);
    return [index.search("ishmeal", { fuzzy: 0.3 }), index.autoSuggest("wat"), JSON.parse(JSON.stringify(index)).documentCount];
  },
  async "lru-cache"() {
    const cache = new LRUCache({ max: 2, ttl: 60_000, fetchMethod: async (key) => key + "!" });
    cache.set("a", 1), cache.set("b", 2), cache.get("a"), cache.set("c", 3);
    return [cache.has("b"), [...cache.keys()], await cache.fetch("z")];
  },
  xstate() {
    const machine = createMachine({ context: { n: 0 }, initial: "off", states: { off: { on: { FLIP: { target: "on", actions: assign({ n: ({ context }) => context.n + 1 }) } } }, on: { on: { FLIP: "off" } } } });
    const seen = [], actor = createActor(machine);
    actor.subscribe((s) => seen.push([s.value, s.context.n]));
    actor.start();
    for (let i = 0; i < 3; i++) actor.send({ type: "FLIP" });
    return seen;
  },
  zustand() {
    const seen = [], store = createStore((set) => ({ n: 0, up: () => set((s) => ({ n: s.n + 1 })) }));
    store.subscribe((now, before) => seen.push([before.n, now.n]));
    store.getState().up();
    return seen;
  },
  deepmerge: () => deepmerge({ a: [1], b: { c: 1 } }, { a: [2], b: { d: 2 } }),
  "fast-deep-equal": () => [equal({ a: [1, { b: /x/ }] }, { a: [1, { b: /x/ }] }), equal({ a: 1 }, { a: 2 })],
  diff: () => [diff.diffWords("the red fox", "the blue fox"), diff.createPatch("a.txt", "a\nb\n", "a\nc\n"), diff.applyPatch("a\nb\n", diff.createPatch("a", "a\nb\n", "a\nc\n"))],
};

export default worker(cases);
