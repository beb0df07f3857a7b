// node/dns.js is node:dns and node:dns/promises: names and their addresses. Go looks them up, and answers with those
// that a worker may connect to. Other records would tell of names of private networks.

"use strict";

const {
  ArrayIsArray, Error, Promise, StringPrototypeIncludes, StringPrototypeStartsWith,
} = primordials;
const { appendArray } = internal;
const { callLater, checks, coded, hide, kCustomPromisify, put, wrongType, wrongValue } = internal.node;

const ADDRCONFIG = 1024;
const V4MAPPED = 2048;
const ALL = 256;

const codes = {
  NODATA: "ENODATA", FORMERR: "EFORMERR", SERVFAIL: "ESERVFAIL", NOTFOUND: "ENOTFOUND", NOTIMP: "ENOTIMP", REFUSED: "EREFUSED",
  BADQUERY: "EBADQUERY", BADNAME: "EBADNAME", BADFAMILY: "EBADFAMILY", BADRESP: "EBADRESP", CONNREFUSED: "ECONNREFUSED",
  TIMEOUT: "ETIMEOUT", EOF: "EOF", FILE: "EFILE", NOMEM: "ENOMEM", DESTRUCTION: "EDESTRUCTION", BADSTR: "EBADSTR",
  BADFLAGS: "EBADFLAGS", NONAME: "ENONAME", BADHINTS: "EBADHINTS", NOTINITIALIZED: "ENOTINITIALIZED",
  LOADIPHLPAPI: "ELOADIPHLPAPI", ADDRGETNETWORKPARAMS: "EADDRGETNETWORKPARAMS", CANCELLED: "ECANCELLED",
};
const orders = ["verbatim", "ipv4first", "ipv6first"];

let defaultOrder = "verbatim";

const { isIP } = internal.nodeModule("address");
const familyOf = (address) => (StringPrototypeIncludes(address, ":") ? 6 : 4);

const notHere = (what, instead) => coded(Error, "ERR_METHOD_NOT_IMPLEMENTED", `node:dns has no ${what} in a worker: ${instead}`);
const byHTTPS = "use a resolver by HTTPS, with fetch()";

// failed makes the error of a call of the system, as Node writes it.
function failed(failure, syscall, hostname) {
  if (!StringPrototypeStartsWith(failure, "E") || StringPrototypeIncludes(failure, " ")) return new Error(`${syscall} ${hostname}: ${failure}`);
  let code = failure;
  if (syscall === "getaddrinfo") code = failure === "ENOTFOUND" ? failure : "EAI_AGAIN";
  else if (failure === "EAI_AGAIN") code = "ESERVFAIL";
  else if (failure === "ETIMEDOUT") code = "ETIMEOUT";
  const error = coded(Error, code, `${syscall} ${code} ${hostname}`);
  if (syscall === "getaddrinfo") put(error, { errno: code === "ENOTFOUND" ? -3008 : -3001 });
  return put(error, { syscall, hostname });
}

// begin looks up a name for an object, or fails later.
function begin(name, by, done) {
  try {
    internal.lookUp(name, done, by);
  } catch (error) {
    callLater(done, null, error.message);
  }
}

// ---- lookup ----

// readOptions reads the options of lookup.
function readOptions(options) {
  const out = { __proto__: null, family: 0, all: false, order: defaultOrder };
  if (options === undefined || options === null) return out;
  if (typeof options === "number") {
    checkFamily(options, "family");
    out.family = options;
    return out;
  }
  if (typeof options !== "object") throw wrongType("options", "of type object or integer", options);
  const { all, family, hints, order, verbatim } = options;
  if (hints !== undefined && hints !== null) {
    checks.number(hints, "options.hints");
    if ((hints & ~(ADDRCONFIG | ALL | V4MAPPED)) !== 0) throw wrongValue("hints", hints);
  }
  if (family !== undefined && family !== null) {
    out.family = family === "IPv4" ? 4 : family === "IPv6" ? 6 : family;
    checkFamily(out.family, "options.family");
  }
  if (all !== undefined && all !== null) {
    checks.boolean(all, "options.all");
    out.all = all;
  }
  if (verbatim !== undefined && verbatim !== null) {
    checks.boolean(verbatim, "options.verbatim");
    out.order = verbatim ? "verbatim" : "ipv4first";
  }
  if (order !== undefined && order !== null) {
    checks.oneOf(order, "options.order", orders);
    out.order = order;
  }
  return out;
}

function checkFamily(family, name) { checks.oneOf(family, name, [0, 4, 6]); }

// chosen returns the addresses of a family, in order.
function chosen(addresses, family, order) {
  const out = new primordials.List();
  const first = order === "ipv6first" ? 6 : order === "ipv4first" ? 4 : 0;
  for (let round = 0; round < 2; round++) {
    for (let i = 0; i < addresses.length; i++) {
      const is = familyOf(addresses[i]);
      if (family !== 0 && is !== family) continue;
      if (first === 0 ? round === 0 : (is === first) === (round === 0)) out[out.length] = addresses[i];
    }
  }
  return out;
}

function shown(list) {
  const out = [];
  for (let i = 0; i < list.length; i++) appendArray(out, { address: list[i], family: familyOf(list[i]) });
  return out;
}

// find looks up a name for lookup. done is called with an error or null, and a list of addresses, later.
function find(hostname, options, done) {
  if (!hostname) {
    callLater(done, null, null);
    return;
  }
  if (isIP(hostname) !== 0) {
    const list = new primordials.List();
    list[0] = hostname;
    callLater(done, null, list);
    return;
  }
  begin(hostname, null, (addresses, failure) => {
    const list = failure === null ? chosen(addresses, options.family, options.order) : null;
    if (failure !== null || list.length === 0) done(failed(failure ?? "ENOTFOUND", "getaddrinfo", hostname), null);
    else done(null, list);
  });
}

function checkHostname(hostname) {
  if (hostname) checks.string(hostname, "hostname");
}

function lookup(hostname, options, callback) {
  checkHostname(hostname);
  if (typeof options === "function") {
    callback = options;
    options = undefined;
  }
  checks.function(callback, "callback");
  const read = readOptions(options);
  find(hostname, read, (error, list) => {
    if (error !== null) callback(error);
    else if (read.all) callback(null, list === null ? [] : shown(list));
    else if (list === null) callback(null, null, read.family === 6 ? 6 : 4);
    else callback(null, list[0], familyOf(list[0]));
  });
  return {};
}

function lookupLater(hostname, options = undefined) {
  checkHostname(hostname);
  const read = readOptions(options);
  return new Promise((resolve, reject) => {
    find(hostname, read, (error, list) => {
      if (error !== null) reject(error);
      else if (read.all) resolve(list === null ? [] : shown(list));
      else resolve(list === null ? { address: null, family: read.family === 6 ? 6 : 4 } : { address: list[0], family: familyOf(list[0]) });
    });
  });
}
hide(lookup, kCustomPromisify, lookupLater);

// ---- records ----

const others = ["ANY", "CAA", "CNAME", "MX", "NAPTR", "NS", "PTR", "SOA", "SRV", "TLSA", "TXT"];

// query asks for the addresses of a name of one family, for an object. done is called with an error or null, and an array.
function query(by, family, name, options, done) {
  const syscall = family === 6 ? "queryAaaa" : "queryA";
  checks.string(name, "name");
  if (options?.ttl) throw notHere("ttl", byHTTPS);
  begin(name, by, (addresses, failure) => {
    if (failure !== null) {
      done(failed(failure, syscall, name));
      return;
    }
    const list = chosen(addresses, family, "verbatim");
    const out = [];
    for (let i = 0; i < list.length; i++) appendArray(out, list[i]);
    if (out.length === 0) done(failed("ENODATA", syscall, name));
    else done(null, out);
  });
}

// typeOf returns the family of a type of records.
function typeOf(type) {
  checks.string(type, "rrtype");
  if (type === "A") return 4;
  if (type === "AAAA") return 6;
  for (let i = 0; i < others.length; i++) if (others[i] === type) throw notHere(`records of the type ${type}`, byHTTPS);
  throw wrongValue("rrtype", type);
}

const noServers = () => notHere("setServers()", "the fleet's resolver is asked; ask another one by HTTPS, with fetch()");
const noService = (name) => notHere(`${name}()`, byHTTPS);

function checkResolver(options) {
  if (options === undefined || options === null) return;
  if (typeof options !== "object") throw wrongType("options", "of type object", options);
  const { timeout, tries } = options;
  if (timeout !== undefined) checks.integer(timeout, "options.timeout", -1, 2147483647);
  if (tries !== undefined) checks.integer(tries, "options.tries", 1, 2147483647);
}

const quick = (what, by, args, family) => {
  const name = args[0];
  const options = args[1];
  const callback = args[args.length - 1];
  return what === "promise"
    ? new Promise((resolve, reject) => { query(by, family, name, options, (error, list) => { error ? reject(error) : resolve(list); }); })
    : withCallback(by, family, name, typeof options === "function" ? undefined : options, callback);
};

function withCallback(by, family, name, options, callback) {
  checks.string(name, "name");
  checks.function(callback, "callback");
  query(by, family, name, options, (error, list) => { error ? callback(error) : callback(null, list); });
  return {};
}

// methods returns the methods that ask for records. byOf returns the object whose cancel() ends them, or null.
function methods(what, byOf) {
  const out = {
    resolve4(...args) { return quick(what, byOf(this), args, 4); },
    resolve6(...args) { return quick(what, byOf(this), args, 6); },
    resolve(name, type, callback) {
      if (typeof type === "function" || type === undefined) {
        callback = type;
        type = "A";
      }
      const family = typeOf(type);
      return quick(what, byOf(this), what === "promise" ? [name] : [name, callback], family);
    },
  };
  const absent = (name) => ({ [name]() {
    const error = noService(name);
    if (what === "promise") return primordials.PromiseReject(error);
    throw error;
  } })[name];
  for (let i = 0; i < others.length; i++) {
    const name = `resolve${others[i][0]}${lower[others[i]]}`;
    out[name] = absent(name);
  }
  out.reverse = absent("reverse");
  return out;
}
const lower = {
  __proto__: null, ANY: "ny", CAA: "aa", CNAME: "name", MX: "x", NAPTR: "aptr", NS: "s", PTR: "tr", SOA: "oa", SRV: "rv",
  TLSA: "lsa", TXT: "xt",
};

// newResolver makes the class Resolver. Those of node:dns/promises give promises.
function newResolver(what) {
  class Resolver {
    constructor(options = undefined) { checkResolver(options); }
    cancel() { internal.cancelLookups(this); }
    getServers() { return []; }
    setServers() { throw noServers(); }
    setLocalAddress(ipv4 = "0.0.0.0", ipv6 = "::0") {
      checks.string(ipv4, "ipv4");
      checks.string(ipv6, "ipv6");
      throw notHere("setLocalAddress()", "the fleet's resolver is asked");
    }
  }
  put(Resolver.prototype, methods(what, (resolver) => resolver), false);
  return Resolver;
}

const shared = {
  ...codes, getDefaultResultOrder() { return defaultOrder; },
  setDefaultResultOrder(order) {
    checks.oneOf(order, "dnsOrder", orders);
    defaultOrder = order;
  },
  getServers() { return []; },
  setServers(servers) {
    if (!ArrayIsArray(servers)) throw wrongType("servers", "an instance of Array", servers);
    throw noServers();
  },
};

const later = put({}, {
  lookup(hostname, options) {
    return lookupLater(hostname, options);
  },
  lookupService() { return primordials.PromiseReject(noService("lookupService")); },
  Resolver: newResolver("promise"),
});
put(later, methods("promise", () => null));
put(later, shared);

const dns = put({}, {
  lookup, lookupService() { throw noService("lookupService"); }, Resolver: newResolver("callback"), ADDRCONFIG, ALL, V4MAPPED,
  promises: later,
});
put(dns, methods("callback", () => null));
put(dns, shared);
internal.nodeModules.dns = dns;
