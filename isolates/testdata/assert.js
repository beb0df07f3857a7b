// assert.js comes before every script of testdata/<area>/: the two are one module, run by TestJS inside a worker.
// A script calls test(name, fn); the module's task handler runs them all in order and returns what became of each.

const tests = [];
let asserted = 0;

function test(name, fn) {
  tests.push({ name, fn });
}

// show is short text for messages; it runs no code of what it shows beyond String().
function show(value) {
  try {
    if (typeof value === "string") return JSON.stringify(value.length > 300 ? value.slice(0, 300) + "…" : value);
    if (typeof value === "bigint") return `${value}n`;
    if (typeof value === "object" && value !== null) {
      const json = JSON.stringify(value);
      return `${Object.prototype.toString.call(value)}${json === undefined ? "" : " " + json.slice(0, 300)}`;
    }
    return String(value);
  } catch {
    return "a value that cannot be shown";
  }
}

function failure(message, fallback) {
  return new Error(message === undefined ? fallback : `${message}: ${fallback}`);
}

function assert(condition, message) {
  asserted++;
  if (!condition) throw failure(message, "is not so");
}

assert.ok = assert;

assert.equal = (actual, expected, message) => {
  asserted++;
  if (!Object.is(actual, expected)) throw failure(message, `${show(actual)}, expected ${show(expected)}`);
};

assert.notEqual = (actual, expected, message) => {
  asserted++;
  if (Object.is(actual, expected)) throw failure(message, `is ${show(expected)}`);
};

function same(a, b, depth) {
  if (Object.is(a, b)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null || depth > 20) return false;
  if (Object.prototype.toString.call(a) !== Object.prototype.toString.call(b)) return false;
  if (a instanceof Date) return Object.is(a.getTime(), b.getTime());
  if (a instanceof Map || a instanceof Set) return same([...a], [...b], depth + 1);
  if (a instanceof ArrayBuffer) return same(new Uint8Array(a), new Uint8Array(b), depth + 1);
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length || a.length !== b.length) return false;
  return keys.every((key) => Object.hasOwn(b, key) && same(a[key], b[key], depth + 1));
}

assert.deepEqual = (actual, expected, message) => {
  asserted++;
  if (!same(actual, expected, 0)) throw failure(message, `${show(actual)}, expected ${show(expected)}`);
};

// checkError compares what was thrown with a constructor, a DOMException's name, or a value itself.
function checkError(error, expected, message) {
  if (typeof expected === "string") {
    if (error instanceof DOMException && error.name === expected) return;
    throw failure(message, `threw ${error && error.name}: ${error && error.message}, expected DOMException ${expected}`);
  }
  if (typeof expected === "function") {
    if (error !== null && typeof error === "object" && error.constructor === expected) return;
    throw failure(message, `threw ${show(error)} ${error && error.message}, expected ${expected.name}`);
  }
  if (expected !== undefined && error !== expected.value) throw failure(message, `threw ${show(error)}, expected ${show(expected.value)}`);
}

// throws: expected is an error's constructor, a DOMException's name, or {value}.
assert.throws = (fn, expected, message) => {
  asserted++;
  let error;
  try {
    fn();
  } catch (e) {
    error = { e };
  }
  if (error === undefined) throw failure(message, `did not throw: ${String(fn).slice(0, 120)}`);
  checkError(error.e, expected, message);
};

assert.rejects = async (promise, expected, message) => {
  asserted++;
  let error;
  try {
    await (typeof promise === "function" ? promise() : promise);
  } catch (e) {
    error = { e };
  }
  if (error === undefined) throw failure(message, "did not reject");
  checkError(error.e, expected, message);
};

// patched puts a value in place of a property while fn runs, and the old one back.
async function patched(object, key, descriptor, fn) {
  const before = Object.getOwnPropertyDescriptor(object, key);
  Object.defineProperty(object, key, { configurable: true, ...descriptor });
  try {
    return await fn();
  } finally {
    if (before === undefined) delete object[key];
    else Object.defineProperty(object, key, before);
  }
}

async function runTests() {
  const results = [];
  for (const { name, fn } of tests) {
    const before = asserted;
    try {
      await fn();
      results.push({ name, ok: asserted > before, message: asserted > before ? "" : "asserted nothing", asserted: asserted - before });
    } catch (error) {
      results.push({ name, ok: false, message: `${error && error.message}\n${error && error.stack}`, asserted: asserted - before });
    }
  }
  return results;
}

export default {
  async task() {
    return runTests();
  },
};
