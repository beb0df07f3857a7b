// crypto/work.js asks Go to compute: what is short at once, while JavaScript waits, and what is long on another thread,
// with the answer coming later. Nothing here is a promise, so nothing of a guest's can come between.

"use strict";

const {
  List, Map, MapPrototypeDelete, MapPrototypeGet,
  MapPrototypeSet, ReflectApply, lengthOf, sealedProto,
} = primordials;
const { DOMException, askOps, isObject, sendOps } = internal;
const { ask, send } = host;
const { crypto } = internal;

// Later stands for a result that is not there yet.
class Later {
  #done = null;
  #failed = null;
  static is(value) {
    return isObject(value) && #done in value;
  }
  on(done, failed) {
    this.#done = done;
    this.#failed = failed;
  }
  done(value) {
    this.#done(value);
  }
  fail(error) {
    this.#failed(error);
  }
}
const isLater = Later.is;
sealedProto(Later);

// after gives what next makes of a result, be it there or later.
function after(result, next) {
  if (!isLater(result)) return next(result);
  const later = new Later();
  result.on((value) => {
    let made;
    try {
      made = next(value);
    } catch (error) {
      later.fail(error);
      return;
    }
    if (isLater(made)) made.on((v) => { later.done(v); }, (error) => { later.fail(error); });
    else later.done(made);
  }, (error) => { later.fail(error); });
  return later;
}

// BORDER is up to how many bytes hashing and AES are done at once: about as long as handing them over takes.
const BORDER = 131072;

const isLong = (bytes) => bytes !== null && lengthOf(bytes) > BORDER;
crypto.isLong = isLong;

class Job {
  later = new Later();
  run;
  read; // makes the result of Go's answer, or throws
  constructor(run, read) {
    this.run = run;
    this.read = read;
  }
}
sealedProto(Job);

const jobs = new Map(); // request id → Job

// work has Go do a function of crypto.subtle; args are its number and its arguments. The result is bytes, a list of them, or a
// boolean; a failure becomes a DOMException of the given name.
function work(long, failure, args) {
  return long ? workElsewhere(failure, args) : check(failure, workNow(args));
}

const { SUBTLE } = askOps;

function workNow(a) {
  switch (a.length) {
    case 3: return ask(SUBTLE, a[0], a[1], a[2]);
    case 4: return ask(SUBTLE, a[0], a[1], a[2], a[3]);
    case 5: return ask(SUBTLE, a[0], a[1], a[2], a[3], a[4]);
    case 6: return ask(SUBTLE, a[0], a[1], a[2], a[3], a[4], a[5]);
    default: return ReflectApply(ask, undefined, prefixed([SUBTLE], a));
  }
}

function prefixed(head, args) {
  const out = new List();
  for (let i = 0; i < head.length; i++) out[i] = head[i];
  for (let i = 0; i < args.length; i++) out[out.length] = args[i];
  return out;
}

function check(failure, answer) {
  if (typeof answer === "string") throw new DOMException(answer, failure);
  return answer;
}

function workElsewhere(failure, args) {
  if (internal.eventIsOver()) throw new DOMException("the event is over", "OperationError");
  try {
    return begin(new Job(internal.acting(), (answer) => check(failure, answer)), sendOps.SUBTLE, args);
  } catch {
    throw new DOMException("the data is too long", "OperationError");
  }
}

// begin sends a command that Go answers under the job's id.
function begin(job, op, args) {
  const id = internal.nextRequestId();
  internal.speakFor(job.run);
  ReflectApply(send, undefined, prefixed([op, id], args));
  MapPrototypeSet(jobs, id, job);
  return job.later;
}

// beginWork is for others than Web Crypto: done(value) or failed(error) is called on behalf of run when Go has answered, with
// what read made of the answer; it may throw.
internal.beginWork = (run, op, args, read, done, failed) => { begin(new Job(run, read), op, args).on(done, failed); };

// worked: Go has done what was asked under this id. What follows from it is done on behalf of the event that asked.
internal.worked = (id, answer) => {
  const job = MapPrototypeGet(jobs, id);
  if (job === undefined) return;
  MapPrototypeDelete(jobs, id);
  internal.startIn(job.run, () => { conclude(job, answer); });
};

function conclude(job, answer) {
  let result;
  try {
    result = job.read(answer);
  } catch (error) {
    job.later.fail(error);
    return;
  }
  job.later.done(result);
}

// forgetWork drops what a past event asked for; Go has ended it.
internal.forgetWork = (run) => internal.forgetIn(jobs, run);

crypto.after = after;
crypto.isLater = isLater;
crypto.work = work;
