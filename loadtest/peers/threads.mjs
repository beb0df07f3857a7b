// A worker thread for each owner, started by its first event.

import { Worker } from "node:worker_threads";

const workerData = process.env.MODE === "threads-fetch" ? "./fetch.mjs" : "./plain.mjs";
const threads = new Map();

function start() {
  const worker = new Worker(new URL("./thread.mjs", import.meta.url), { workerData, resourceLimits: { maxOldGenerationSizeMb: 128 } });
  const waiting = new Map();
  let last = 0;
  worker.on("message", ([id, reply]) => {
    waiting.get(id)(reply);
    waiting.delete(id);
  });
  return (owner, data) =>
    new Promise((resolve) => {
      waiting.set(++last, resolve);
      const copy = new Uint8Array(data); // what goes to a thread is gone here, and data is part of what came from the socket
      worker.postMessage([last, owner, copy], [copy.buffer]);
    });
}

export function answer(owner, data) {
  let ask = threads.get(owner);
  if (!ask) {
    threads.set(owner, (ask = start()));
  }
  return ask(owner, data);
}
