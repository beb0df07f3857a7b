// events/listeners.js holds the events for the listeners of addEventListener("fetch" | "task" | "scheduled"). Each keeps
// its run (events/handlers.js) in a private field.

"use strict";

const { ObjectDefineProperty, sealedProto } = primordials;
const {
  DOMException, Event, defineInterface, defineTaskMembers, illegalConstructor, illegalInvocation, isObject, requireArguments,
} = internal;

let runOf;

// Making has the parts of the event under construction. Handler code can replace the parent of a class, and super()
// calls that parent. So the runtime passes nothing to super().
class Making {
  run;
  request;
  data;
  constructor(run, request, data) {
    this.run = run;
    this.request = request;
    this.data = data;
  }
}
sealedProto(Making);
let making = null;

function make(Class, run, request, data) {
  making = new Making(run, request, data);
  try {
    return new Class();
  } finally {
    making = null;
  }
}

class ExtendableEvent extends Event {
  #run;
  constructor(type) {
    if (making === null) throw illegalConstructor();
    super(type);
    internal.eventState(this).cancelable = true;
    this.#run = making.run;
  }
  static {
    runOf = (value) => {
      if (!isObject(value) || !(#run in value)) throw illegalInvocation("ExtendableEvent");
      return value.#run;
    };
  }
  waitUntil(promise) {
    const run = runOf(this);
    requireArguments(arguments.length, 1, "waitUntil");
    internal.waitUntil(run, promise);
  }
  passThroughOnException() { runOf(this); }
  respondWith(response) {
    const run = runOf(this);
    requireArguments(arguments.length, 1, "respondWith");
    if (run.over || run.answered) throw new DOMException("respondWith: the event is over", "InvalidStateError");
    if (run.responded) throw new DOMException("respondWith was called already", "InvalidStateError");
    run.responded = true;
    internal.eventState(this).stoppedImmediately = true;
    internal.answerWith(run, response);
  }
}
defineInterface(ExtendableEvent, "ExtendableEvent", true);

class FetchEvent extends ExtendableEvent {
  #request;
  constructor() {
    super("fetch");
    this.#request = making.request;
  }
  get request() {
    if (!(#request in this)) throw illegalInvocation("FetchEvent");
    return this.#request;
  }
}
defineInterface(FetchEvent, "FetchEvent", true);
internal.newFetchEvent = (run, request) => make(FetchEvent, run, request, null);

function listenerClass(name, times) {
  let dataOf;
  class TaskListenerEvent extends ExtendableEvent {
    #data;
    constructor() {
      super(times ? "scheduled" : "task");
      this.#data = making.data;
    }
    static {
      dataOf = (value) => {
        if (!isObject(value) || !(#data in value)) throw illegalInvocation(name);
        return value.#data;
      };
    }
  }
  defineTaskMembers(TaskListenerEvent, (value) => dataOf(value), times);
  ObjectDefineProperty(TaskListenerEvent, "name", { __proto__: null, value: name });
  defineInterface(TaskListenerEvent, name, true);
  return (data) => make(TaskListenerEvent, data.run, null, data);
}
internal.newTaskEvent = listenerClass("TaskEvent", false);
internal.newScheduledEvent = listenerClass("ScheduledEvent", true);
