// node/perf_hooks.js is node:perf_hooks, as far as the web platform has it.

"use strict";

const { ReflectGet, globalThis } = primordials;
const { coded, later, put } = internal.node;

const module = {};
const names = ["Performance", "PerformanceEntry", "PerformanceMark", "PerformanceMeasure", "PerformanceObserver", "PerformanceObserverEntryList", "performance"];
for (let i = 0; i < names.length; i++) later(module, names[i], () => ReflectGet(globalThis, names[i]));

const absent = (name) => coded(primordials.Error, "ERR_METHOD_NOT_IMPLEMENTED", `node:perf_hooks has no ${name} in a worker: it reads no clock of the process`);
put(module, {
  constants: {},
  createHistogram() { throw absent("createHistogram"); },
  monitorEventLoopDelay() { throw absent("monitorEventLoopDelay"); },
  eventLoopUtilization() { return { idle: 0, active: 0, utilization: 0 }; },
  timerify(fn) { return fn; },
});
internal.nodeModules.perf_hooks = module;
