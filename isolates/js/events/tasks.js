// events/tasks.js holds what the handlers task and scheduled get: the event of a task or schedule.

"use strict";

const {
  Date, JSONParse, NumberIsFinite, ObjectDefineProperty, PromiseReject, PromiseResolve, StringPrototypeIncludes,
  StringPrototypeToLowerCase, TypeError, Uint8Array, sealedProto,
} = primordials;
const { TOKEN, copyMembers, defineInterface, illegalConstructor, illegalInvocation, isObject, listFrom, sendOps, toDictionary } = internal;
const { decode, encode, send } = host;

class TaskData {
  run;
  type;
  id;
  attempt;
  replays = 0;
  rawHeaders;
  headers = null;
  body; // a string when it is ASCII, otherwise bytes
  scheduledTime;
  cron;
  parsed = false;
  source = undefined;
  payload = undefined;
  constructor(run, type, id, attempt, headers, body, scheduledTime, cron) {
    this.run = run;
    this.type = type;
    this.id = id;
    this.attempt = attempt;
    this.rawHeaders = headers;
    this.body = body;
    this.scheduledTime = scheduledTime;
    this.cron = cron;
  }
}
sealedProto(TaskData);
internal.TaskData = TaskData;

function headersOf(data) {
  return (data.headers ??= internal.newHeaders(listFrom(data.rawHeaders), true));
}

// signalOf returns the signal of a run, which fires when somebody cancels its event.
function signalOf(run) {
  if (run.signal === null) {
    run.signal = internal.newSignal();
    if (run.cancelled !== null) internal.signalAbort(run.signal, run.cancelled);
  }
  return run.signal;
}

function contentType(data) {
  const flat = data.rawHeaders;
  if (flat === null || flat === undefined) return "";
  for (let i = 0; i + 1 < flat.length; i += 2) {
    if (StringPrototypeToLowerCase(flat[i]) === "content-type") return StringPrototypeToLowerCase(flat[i + 1]);
  }
  return "";
}

// textOf returns the body as text() of a Request does: without a byte order mark.
function textOf(data) {
  return typeof data.body === "string" ? data.body : internal.stripBOM(decode(data.body, false));
}

function bytesOf(data) {
  return typeof data.body === "string" ? encode(data.body) : new Uint8Array(data.body);
}

// payloadOf parses the body once. It returns JSON when the content type requires JSON or when the body is valid JSON,
// and otherwise the bytes.
function payloadOf(data) {
  if (data.parsed) return data.payload;
  const type = contentType(data);
  const mustParse = StringPrototypeIncludes(type, "application/json") || StringPrototypeIncludes(type, "+json");
  if (!StringPrototypeIncludes(type, "application/octet-stream")) {
    try {
      data.payload = JSONParse(textOf(data));
    } catch (error) {
      if (mustParse) {
        data.run.malformed = error;
        throw error;
      }
      data.payload = bytesOf(data);
    }
  } else data.payload = bytesOf(data);
  data.parsed = true;
  return data.payload;
}

// sourceOf returns what the fleet wrote in the headers from first to end about the source of an event; null = it has
// none. Others cannot write such headers, in any case of letters. It keeps the value in data.
internal.sourceOf = (data, flat, first, end) => {
  if (data.source !== undefined) return data.source;
  let stream, subject, sequence, time, key, operation;
  for (let i = first; i + 1 < end; i += 2) {
    switch (flat[i]) {
      case "Source-Stream": stream = flat[i + 1]; break;
      case "Source-Subject": subject = flat[i + 1]; break;
      case "Source-Sequence": sequence = +flat[i + 1]; break;
      case "Source-Time": time = new Date(flat[i + 1]); break;
      case "Source-Key": key = flat[i + 1]; break;
      case "Source-Operation": operation = flat[i + 1]; break;
    }
  }
  // Literals: to define one property after the other takes several microseconds.
  if (key !== undefined) data.source = { stream, subject, sequence, time, key, operation };
  else if (operation !== undefined) data.source = { stream, subject, sequence, time, operation };
  else if (stream !== undefined) data.source = { stream, subject, sequence, time };
  else data.source = subject === undefined ? null : { subject, time };
  return data.source;
};

internal.delayOf = delayOf;
function delayOf(options) {
  const init = toDictionary(options, "retry: the options");
  const given = init === undefined ? undefined : init.delaySeconds;
  if (given === undefined) return -1;
  const delay = +given;
  if (!NumberIsFinite(delay) || delay < 0) throw new TypeError("retry: delaySeconds is not a number of zero or more");
  return delay;
}

// defineTaskMembers adds the members of a task event to a class. With times it also adds those of a scheduled event.
function defineTaskMembers(Class, dataOf, times) {
  const promised = (self, convert) => {
    try {
      return PromiseResolve(convert(dataOf(self)));
    } catch (error) {
      return PromiseReject(error);
    }
  };
  const members = {
    get id() { return dataOf(this).id; },
    get attempt() { return dataOf(this).attempt; },
    get replays() { return dataOf(this).replays; },
    get headers() { return headersOf(dataOf(this)); },
    get source() { return internal.sourceOf(dataOf(this), dataOf(this).rawHeaders, 0, dataOf(this).rawHeaders?.length ?? 0); },
    get payload() { return payloadOf(dataOf(this)); },
    get signal() { return signalOf(dataOf(this).run); },
    text() { return promised(this, textOf); },
    json() { return promised(this, (data) => JSONParse(textOf(data))); },
    bytes() { return promised(this, bytesOf); },
    noRetry() {
      const { run } = dataOf(this);
      if (!run.over) send(sendOps.NO_RETRY, run.id);
    },
    retry(options = undefined) {
      const { run } = dataOf(this);
      const delay = delayOf(options);
      if (!run.over) send(sendOps.RETRY, run.id, delay);
    },
  };
  copyMembers(Class, members);
  if (!times) return;
  copyMembers(Class, {
    get scheduledTime() { return dataOf(this).scheduledTime; },
    get cron() { return dataOf(this).cron; },
  });
}

internal.defineTaskMembers = defineTaskMembers;

// TaskInfo and ScheduledInfo are the first argument of export default {task, scheduled}.
function infoClass(name, times) {
  let dataOf;
  class Info {
    #data;
    constructor(token = undefined, data) {
      if (token !== TOKEN) throw illegalConstructor();
      this.#data = data;
    }
    static {
      dataOf = (value) => {
        if (!isObject(value) || !(#data in value)) throw illegalInvocation(name);
        return value.#data;
      };
    }
    get type() { return dataOf(this).type; }
  }
  defineTaskMembers(Info, (value) => dataOf(value), times);
  ObjectDefineProperty(Info, "name", { __proto__: null, value: name });
  defineInterface(Info, name, true);
  internal.addInspector((value) => isInfo(dataOf, value), (value) => fieldsOf(dataOf(value), times));
  return (data) => new Info(TOKEN, data);
}

function isInfo(dataOf, value) {
  try {
    dataOf(value);
    return true;
  } catch {
    return false;
  }
}

function fieldsOf(data, times) {
  const headers = headersOf(data);
  if (!times) return ["type", data.type, "id", data.id, "attempt", data.attempt, "headers", headers];
  return ["type", data.type, "id", data.id, "attempt", data.attempt, "headers", headers,
    "scheduledTime", data.scheduledTime, "cron", data.cron];
}

internal.newTaskInfo = infoClass("TaskEvent", false);
internal.newScheduledInfo = infoClass("ScheduledEvent", true);
