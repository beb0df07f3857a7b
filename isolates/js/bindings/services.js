// bindings/services.js is the class of a service binding: env.NAME calls another worker of the owner. Its fetch() takes the
// way of fetch(). Each other name is a method of the worker's entrypoint: arguments and result are cloned.

"use strict";

const {
  Error, EvalError, List, ObjectDefineProperty, ObjectFreeze, ObjectPrototype, ObjectSetPrototypeOf, PromiseReject, Proxy, ReflectGet, ReflectHas,
  RangeError, ReferenceError, ReflectOwnKeys, StringPrototypeIndexOf, StringPrototypeSlice, SyntaxError, TypeError, URIError, lengthOf,
} = primordials;
const {
  DOMException, Request, TOKEN, Through, defineInterface, illegalConstructor, illegalInvocation, isError, isObject, requestState, requireArguments,
} = internal;

const MAX_BYTES = 32 * 1024 * 1024; // of the arguments of a call, and of its result

// serialize returns the bytes of a value that goes to another worker.
function serialize(value, what) {
  const bytes = internal.serialize(value);
  if (lengthOf(bytes) > MAX_BYTES) {
    throw new TypeError(`${what} have more than ${MAX_BYTES} bytes`);
  }
  return bytes;
}

let targetOf; // returns the name of a Fetcher, and throws for another object

class Fetcher {
  #name;
  #through;
  static {
    targetOf = (object) => {
      if (!isObject(object) || !(#name in object)) throw illegalInvocation("Fetcher");
      return object.#name;
    };
  }
  constructor(token = undefined, name) {
    if (token !== TOKEN) throw illegalConstructor();
    this.#name = name;
    this.#through = new Through("services", name);
  }
  fetch(input, init = undefined) {
    try {
      if (!(#name in this)) throw illegalInvocation("Fetcher");
      requireArguments(arguments.length, 1, "Fetcher.fetch");
      const request = new Request(input, init);
      return internal.checked(internal.fetch(request, this.#through), requestState(request));
    } catch (error) {
      return PromiseReject(error);
    }
  }
}
defineInterface(Fetcher, "Fetcher", true);

// call calls a method of the worker that a Fetcher names. "" would be a request.
function call(service, method, args) {
  try {
    if (method === "") throw new TypeError("the name of a method is empty");
    return internal.callBinding("services", targetOf(service), method, nothing, serialize(args, "the arguments"), convert);
  } catch (error) {
    return PromiseReject(error);
  }
}

const nothing = new List();

// convert returns the result of a method, or throws what it threw. An error has remote: true, as at Cloudflare.
function convert(_, bytes) {
  const answer = internal.deserialize(bytes);
  const exception = answer[3];
  const value = exception === undefined ? answer[1] : new DOMException(exception.message, exception.name);
  if (!answer[0]) return value;
  if (isError(value)) {
    const keys = ReflectOwnKeys(answer[2]);
    for (let i = 0; i < keys.length; i++) define(value, keys[i], answer[2][keys[i]]);
    define(value, "remote", true);
  }
  throw value;
}

const errors = { __proto__: null, Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };

// remoteError makes the error that a fetch handler threw from its text.
internal.remoteError = (text) => {
  const colon = StringPrototypeIndexOf(text, ": ");
  const Class = errors[colon < 0 ? text : StringPrototypeSlice(text, 0, colon)];
  let error;
  if (Class === undefined) error = new Error(text);
  else error = new Class(colon < 0 ? "" : StringPrototypeSlice(text, colon + 2));
  define(error, "remote", true);
  return error;
};

function define(object, name, value) {
  ObjectDefineProperty(object, name, { __proto__: null, value, writable: true, enumerable: true, configurable: true });
}

// methods is the prototype of Fetcher.prototype: it has each name that no object has.
const methods = new Proxy(ObjectFreeze({}), {
  __proto__: null,
  get(_, name, receiver) {
    if (typeof name !== "string" || name === "then" || ReflectHas(ObjectPrototype, name)) return ReflectGet(ObjectPrototype, name, receiver);
    return (...args) => call(receiver, name, args);
  },
  has(_, name) {
    return typeof name === "string" && name !== "then" || ReflectHas(ObjectPrototype, name);
  },
});
ObjectSetPrototypeOf(Fetcher.prototype, methods);

const newService = (name) => ObjectFreeze(new Fetcher(TOKEN, name));
internal.bindingKinds.services = newService;

// newExport makes the Fetcher of an entrypoint that the worker's own module exports.
internal.newExport = (name) => newService(`exports.${name}`);

// encodeResult returns the bytes that convert reads: of a value that is returned or thrown, the own properties of an error,
// which its clone does not have, and the parts of a DOMException, which is a platform object.
internal.encodeResult = (threw, value) => {
  const exception = internal.isDOMException(value) ? internal.domExceptionParts(value) : undefined;
  const props = threw && isError(value) ? ownProperties(value) : undefined;
  return serialize([threw, exception === undefined ? value : undefined, props, exception], "the result and its parts");
};

function ownProperties(error) {
  const props = { __proto__: null };
  const keys = ReflectOwnKeys(error);
  for (let i = 0; i < keys.length; i++) {
    const key = keys[i];
    if (typeof key !== "string" || key === "stack" || key === "message" || key === "cause") continue;
    const value = error[key];
    try {
      internal.serialize(value);
    } catch { // a function, for example: the error goes without it
      continue;
    }
    props[key] = value;
  }
  return props;
}
