// node/diagnostics_channel.js is node:diagnostics_channel.

"use strict";

const { Map, MapPrototypeGet, MapPrototypeSet, PromisePrototypeThen, ReflectApply } = primordials;
const { checks, put, wrongType } = internal.node;

const channels = new Map();

class Channel {
  name;
  _subscribers = [];
  _stores = [];
  constructor(name) { this.name = name; }
  get hasSubscribers() { return this._subscribers.length > 0 || this._stores.length > 0; }
  subscribe(listener) {
    checks.function(listener, "subscription");
    this._subscribers = [...this._subscribers, listener];
  }
  unsubscribe(listener) {
    const at = this._subscribers.indexOf(listener);
    if (at === -1) return false;
    this._subscribers = this._subscribers.toSpliced(at, 1);
    return true;
  }
  bindStore(store, transform) {
    this.unbindStore(store);
    this._stores.push([store, transform]);
  }
  unbindStore(store) {
    const at = this._stores.findIndex(([s]) => s === store);
    if (at === -1) return false;
    this._stores.splice(at, 1);
    return true;
  }
  publish(data) {
    const list = this._subscribers;
    for (let i = 0; i < list.length; i++) {
      try {
        ReflectApply(list[i], undefined, [data, this.name]);
      } catch (error) {
        internal.queueMicrotask(() => { throw error; });
      }
    }
  }
  runStores(data, fn, self, ...args) {
    let run = () => {
      this.publish(data);
      return ReflectApply(fn, self, args);
    };
    for (let i = 0; i < this._stores.length; i++) {
      const [store, transform] = this._stores[i];
      const inner = run;
      run = () => {
        let value = data;
        try {
          if (transform) value = transform(data);
        } catch (error) {
          internal.queueMicrotask(() => { throw error; });
          return inner();
        }
        return store.run(value, inner);
      };
    }
    return run();
  }
}

function channel(name) {
  const known = MapPrototypeGet(channels, name);
  if (known !== undefined) return known;
  if (typeof name !== "string" && typeof name !== "symbol") throw wrongType("channel", "of type string or symbol", name);
  const made = new Channel(name);
  MapPrototypeSet(channels, name, made);
  return made;
}

const kinds = ["start", "end", "asyncStart", "asyncEnd", "error"];

// traced makes a call between the channels start and end of a TracingChannel. What it throws is published.
function traced(tracing, context, call) {
  return tracing.start.runStores(context, () => {
    try {
      return call();
    } catch (error) {
      context.error = error;
      tracing.error.publish(context);
      throw error;
    } finally {
      tracing.end.publish(context);
    }
  });
}

class TracingChannel {
  constructor(names) {
    for (let i = 0; i < kinds.length; i++) {
      const kind = kinds[i];
      const given = typeof names === "string" ? channel(`tracing:${names}:${kind}`) : names?.[kind];
      if (!(given instanceof Channel)) throw wrongType(`nameOrChannels.${kind}`, "an instance of Channel", given);
      put(this, { [kind]: given });
    }
  }
  get hasSubscribers() { return kinds.some((kind) => this[kind].hasSubscribers); }
  subscribe(handlers) { for (let i = 0; i < kinds.length; i++) if (handlers[kinds[i]]) this[kinds[i]].subscribe(handlers[kinds[i]]); }
  unsubscribe(handlers) {
    let all = true;
    for (let i = 0; i < kinds.length; i++) if (handlers[kinds[i]] && !this[kinds[i]].unsubscribe(handlers[kinds[i]])) all = false;
    return all;
  }
  traceSync(fn, context = {}, self, ...args) {
    if (!this.hasSubscribers) return ReflectApply(fn, self, args);
    return traced(this, context, () => {
      const result = ReflectApply(fn, self, args);
      context.result = result;
      return result;
    });
  }
  tracePromise(fn, context = {}, self, ...args) {
    if (!this.hasSubscribers) return ReflectApply(fn, self, args);
    const done = (key, value) => {
      context[key] = value;
      if (key === "error") this.error.publish(context);
      this.asyncStart.publish(context);
      this.asyncEnd.publish(context);
    };
    return traced(this, context, () => {
      const promise = primordials.PromiseResolve(ReflectApply(fn, self, args));
      return PromisePrototypeThen(promise, (value) => {
        done("result", value);
        return value;
      }, (error) => {
        done("error", error);
        throw error;
      });
    });
  }
  traceCallback(fn, position = -1, context = {}, self = undefined, ...args) {
    if (!this.hasSubscribers) return ReflectApply(fn, self, args);
    const at = position < 0 ? args.length + position : position;
    const callback = args[at];
    checks.function(callback, "callback");
    const tracing = this;
    args[at] = function (error, result) {
      if (error) {
        context.error = error;
        tracing.error.publish(context);
      } else context.result = result;
      return tracing.asyncStart.runStores(context, () => {
        try {
          return ReflectApply(callback, this, arguments); // eslint-disable-line prefer-rest-params
        } finally {
          tracing.asyncEnd.publish(context);
        }
      });
    };
    return traced(this, context, () => ReflectApply(fn, self, args));
  }
}

internal.nodeModules.diagnostics_channel = put({}, {
  channel, Channel,
  hasSubscribers(name) { return MapPrototypeGet(channels, name)?.hasSubscribers ?? false; },
  subscribe(name, listener) { channel(name).subscribe(listener); },
  unsubscribe(name, listener) { return channel(name).unsubscribe(listener); },
  tracingChannel(names) { return new TracingChannel(names); },
});
