// crypto/work.js asks Go to compute. Short work runs synchronously, while JavaScript waits. Long work runs on another
// thread, and the answer comes later. The code here uses no promises, so handler code cannot intercept the results.

"use strict";

const {
  List, Map, MapPrototypeDelete, MapPrototypeGet,
  MapPrototypeSet, ReflectApply, lengthOf, sealedProto,
} = primordials;
const { DOMException, askOps, isObject, sendOps } = internal;
const { ask, send } = host;
const { crypto } = internal;

// Later is a result that does not exist yet.
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

// after returns the result of next(result), immediately or later.
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

// BORDER is the maximum of bytes that the code hashes or encrypts with AES synchronously. That work takes about as
// long as a transfer to another thread.
const BORDER = 131072;

const isLong = (bytes) => bytes !== null && lengthOf(bytes) > BORDER;
crypto.isLong = isLong;

class Job {
  later = new Later();
  run;
  read; // makes the result from Go's answer, or throws
  constructor(run, read) {
    this.run = run;
    this.read = read;
  }
}
sealedProto(Job);

const jobs = new Map(); // request id → Job

// work makes Go run a function of crypto.subtle. args are its number and its arguments. The result is bytes, a list
// of bytes, or a boolean. A failure becomes a DOMException with the given name.
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

// begin sends a command. Go sends the answer with the job's id.
function begin(job, op, args) {
  const id = internal.nextRequestId();
  internal.speakFor(job.run);
  ReflectApply(send, undefined, prefixed([op, id], args));
  MapPrototypeSet(jobs, id, job);
  return job.later;
}

// beginWork is for code outside of Web Crypto. After Go's answer it calls done(value) or failed(error) for run. value
// is the result of read(answer), which can throw.
internal.beginWork = (run, op, args, read, done, failed) => { begin(new Job(run, read), op, args).on(done, failed); };

// worked handles Go's answer for this id. The code that follows runs for the event that asked.
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

// forgetWork removes the jobs of a past event. Go has ended them.
internal.onForget((run) => { internal.forgetIn(jobs, run); });

crypto.after = after;
crypto.isLater = isLater;
crypto.work = work;
