// An isolate of isolated-vm for each owner, with a limit on heap and time; strings go in and out, there is no web platform in it.

import { readFileSync } from "node:fs";
import ivm from "isolated-vm";

const source = readFileSync(new URL("../workers/order.mjs", import.meta.url), "utf8");
const call = `import handler from "worker";
export default (text) => JSON.stringify(handler.task({ payload: JSON.parse(text) }));`;

const decoder = new TextDecoder();
const isolates = new Map();
const options = { timeout: 1000, arguments: { copy: true }, result: { copy: true } };

function start() {
  const isolate = new ivm.Isolate({ memoryLimit: 128 });
  const context = isolate.createContextSync();
  const worker = isolate.compileModuleSync(source);
  const main = isolate.compileModuleSync(call);
  main.instantiateSync(context, () => worker);
  main.evaluateSync();
  return main.namespace.getSync("default", { reference: true });
}

export function answer(owner, data) {
  let run = isolates.get(owner);
  if (!run) {
    isolates.set(owner, (run = start()));
  }
  return run.applySync(undefined, [decoder.decode(data)], options);
}
