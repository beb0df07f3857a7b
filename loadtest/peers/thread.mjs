import { parentPort, workerData } from "node:worker_threads";

const { answer } = await import(workerData);

parentPort.on("message", async ([id, owner, data]) => parentPort.postMessage([id, await answer(owner, data)]));
