// node/tls.js is node:tls: sockets of clients. Go speaks TLS, and verifies certificates.

"use strict";

const {
  ArrayIsArray, Error, List, StringPrototypeEndsWith, StringPrototypeIndexOf, StringPrototypeSlice, StringPrototypeSplit,
  StringPrototypeStartsWith, StringPrototypeToLowerCase, TypeError,
} = primordials;
const { TLSOptions, liveBytes, tlsVerify } = internal;
const { builtin, callable, coded, net, put, wrongType } = builtinNet();
const { parts } = net;
const { Buffer } = builtin("buffer");
const { Socket, isIP } = builtin("net");

// builtinNet loads node:net, and returns what Node's modules share.
function builtinNet() {
  internal.node.builtin("net");
  return internal.node;
}

const VERSIONS = { __proto__: null, TLSv1: 1, "TLSv1.1": 2, "TLSv1.2": 3, "TLSv1.3": 4 };

const { FROM_13, UP_TO_12 } = internal.tlsVersions;

const notHere = (what) => coded(Error, "ERR_METHOD_NOT_IMPLEMENTED", `${what} is not there in a worker`);

// pem returns the text of a certificate or key: a string, bytes, or a list of them.
function pem(value, name) {
  if (value === undefined || value === null || value === false) return "";
  if (ArrayIsArray(value)) {
    let text = "";
    for (let i = 0; i < value.length; i++) text += `${pem(value[i], name)}\n`;
    return text;
  }
  if (typeof value === "string") return value;
  if (typeof value === "object" && value.pem !== undefined) return pem(value.pem, name);
  if (!internal.isBufferSource(value)) throw wrongType(`options.${name}`, "of type string or an instance of Buffer", value);
  return host.decode(liveBytes(value), false);
}

let keptOf; // what a SecureContext keeps

class SecureContext {
  context = {};
  #kept;
  constructor(options = {}) {
    if (options.pfx) throw notHere("a certificate in PKCS#12 (pfx): give cert and key in PEM. It");
    if (options.passphrase && options.key) throw notHere("an encrypted key (passphrase)");
    const oldest = versionOf(options.minVersion, "minimum");
    const newest = versionOf(options.maxVersion, "maximum");
    if (newest !== undefined && newest < VERSIONS["TLSv1.2"]) throw notHere("TLS before 1.2 (maxVersion)");
    this.#kept = {
      __proto__: null, ca: pem(options.ca, "ca"), cert: pem(options.cert, "cert"), key: pem(options.key, "key"),
      versions: (newest < VERSIONS["TLSv1.3"] ? UP_TO_12 : 0) + (oldest >= VERSIONS["TLSv1.3"] ? FROM_13 : 0),
    };
  }
  static {
    keptOf = (value) => {
      if (!internal.isObject(value) || !(#kept in value)) throw wrongType("options.secureContext", "an instance of SecureContext", value);
      return value.#kept;
    };
  }
}

function versionOf(value, which) {
  if (value === undefined || value === null) return undefined;
  const version = VERSIONS[value];
  if (version !== undefined) return version;
  throw coded(TypeError, "ERR_TLS_INVALID_PROTOCOL_VERSION", `${internal.inspect(value)} is not a valid ${which} TLS protocol version`);
}

function createSecureContext(options = {}) { return new SecureContext(options); }

// protocolsOf reads ALPNProtocols: a list of names, or their form in TLS.
function protocolsOf(value) {
  const list = new List();
  if (ArrayIsArray(value)) {
    for (let i = 0; i < value.length; i++) list[list.length] = typeof value[i] === "string" ? value[i] : host.decode(liveBytes(value[i]), false);
  } else if (internal.isBufferSource(value)) {
    const bytes = liveBytes(value);
    for (let at = 0; at < bytes.length; at += bytes[at] + 1) {
      list[list.length] = host.decode(primordials.subarray(bytes, at + 1, at + 1 + bytes[at]), false);
    }
  }
  return list;
}

// optionsOf makes of Node's options those of the connection.
function optionsOf(options, name) {
  const { ca, cert, key, versions } = keptOf(options.secureContext ?? createSecureContext(options));
  const tls = new TLSOptions(`${name}`);
  tls.protocols = protocolsOf(options.ALPNProtocols);
  tls.authorities = ca;
  tls.certificate = cert;
  tls.key = key;
  tls.versions = versions;
  if (options.rejectUnauthorized === false) tls.verify = tlsVerify.NONE;
  else if (typeof options.checkServerIdentity === "function") tls.verify = tlsVerify.CHAIN;
  return tls;
}

// certificateOf makes the object that getPeerCertificate() returns, of what Go says of the connection.
function certificateOf(facts) {
  const colons = (text) => primordials.ArrayPrototypeJoin(StringPrototypeSplit(text, " "), ":");
  return put({}, {
    subject: put({}, { CN: facts[5] }), issuer: put({}, { CN: facts[6] }), subjectaltname: facts[7] === "" ? undefined : facts[7], ca: false,
    valid_from: facts[8], valid_to: facts[9], fingerprint: colons(facts[10]), fingerprint256: colons(facts[11]),
    serialNumber: primordials.StringPrototypeToUpperCase(facts[12]),
  });
}

class TLSSocket extends Socket {
  encrypted = true;
  authorized = false;
  authorizationError = null;
  alpnProtocol = null;
  secureConnecting = true;
  servername = undefined;
  #options;
  #facts = null;
  #name = "";
  constructor(socket = undefined, options = {}) {
    super(options);
    this.#options = options;
    parts.addTLS(this, (more, host) => this.#secure({ ...more, ...this.#options }, host), (facts, connected) => this.#opened(facts, connected));
    if (options.isServer) throw net.noServer();
    if (socket === undefined || socket === null) return;
    if (!(socket instanceof Socket)) throw notHere("TLS over a stream that is no net.Socket");
    const begin = () => { parts.over(this, socket, this.#secure(options, parts.hostOf(socket))); };
    if (socket.connecting) socket.once("connect", begin);
    else begin();
  }
  #secure(options, host) {
    const name = `${options.servername || options.host || host || "localhost"}`;
    this.servername = name;
    this.#name = name;
    return optionsOf(options, name);
  }
  // #opened reports whether the server is who it should be: otherwise nothing may be sent.
  #opened(facts, connected) {
    if (facts === null || facts.length === 0) return false;
    this.#facts = facts;
    const { checkServerIdentity, rejectUnauthorized } = this.#options;
    const direct = this.#options.socket === undefined;
    let problem = facts[3] === "" ? undefined : coded(Error, facts[4] === "" ? "ERR_TLS_CERT" : facts[4], facts[3]);
    if (problem === undefined && typeof checkServerIdentity === "function" && rejectUnauthorized !== false) {
      problem = checkServerIdentity(this.#name, certificateOf(facts));
      if (problem) {
        this.destroy(problem);
        return false;
      }
    }
    this.authorized = !problem;
    this.authorizationError = problem ? problem.code ?? problem.message : null;
    this.alpnProtocol = facts[2] === "" ? false : facts[2];
    this.secureConnecting = false;
    if (direct) connected(); // else it was before
    this.emit("secure");
    this.emit("secureConnect");
    return true;
  }
  getProtocol() { return this.#facts === null ? null : primordials.StringPrototypeSlice(this.#facts[0], 0, 3) + `v${StringPrototypeSlice(this.#facts[0], 4)}`; }
  getCipher() {
    return this.#facts === null ? {} : put({}, { name: this.#facts[1], standardName: this.#facts[1], version: this.getProtocol() });
  }
  getPeerCertificate() { return this.#facts === null ? null : certificateOf(this.#facts); }
  getCertificate() { return {}; }
  getSession() { return undefined; }
  getTLSTicket() { return undefined; }
  getFinished() { return undefined; }
  getPeerFinished() { return undefined; }
  getEphemeralKeyInfo() { return {}; }
  getSharedSigalgs() { return []; }
  isSessionReused() { return false; }
  setSession() {}
  setServername(name) { this.#options = { ...this.#options, servername: name }; }
  setMaxSendFragment() { return true; }
  disableRenegotiation() {}
  enableTrace() {}
  renegotiate() { throw notHere("renegotiation of TLS"); }
  exportKeyingMaterial() { throw notHere("keying material of TLS"); }
}

function connect(...args) {
  const [options, callback] = net.normalArgs(args);
  // connect(port, host, options): the options come after the address
  const more = typeof args[1] === "object" && args[1] !== null ? args[1] : typeof args[2] === "object" && args[2] !== null ? args[2] : {};
  const all = { ...options, ...more };
  const socket = new TLSSocket(all.socket, all);
  if (callback !== null) socket.once("secureConnect", callback);
  if (!all.socket) socket.connect(all);
  return socket;
}

// matches reports whether the name of a certificate is that of a host. A star stands for the first label.
function matches(name, hostname) {
  name = StringPrototypeToLowerCase(name);
  hostname = StringPrototypeToLowerCase(StringPrototypeEndsWith(hostname, ".") ? StringPrototypeSlice(hostname, 0, -1) : hostname);
  if (!StringPrototypeStartsWith(name, "*.")) return name === hostname;
  const dot = StringPrototypeIndexOf(hostname, ".");
  const rest = StringPrototypeSlice(name, 1);
  return dot > 0 && StringPrototypeSlice(hostname, dot) === rest && StringPrototypeIndexOf(StringPrototypeSlice(rest, 1), ".") !== -1;
}

function checkServerIdentity(hostname, cert) {
  hostname = `${hostname}`;
  const names = cert.subjectaltname ? StringPrototypeSplit(cert.subjectaltname, ", ") : [];
  const kind = isIP(hostname) ? "IP Address:" : "DNS:";
  let reason = `Host: ${hostname}. is not in the cert's altnames: ${cert.subjectaltname}`;
  let named = false;
  for (let i = 0; i < names.length; i++) {
    if (!StringPrototypeStartsWith(names[i], kind)) continue;
    named = true;
    const name = StringPrototypeSlice(names[i], kind.length);
    if (isIP(hostname) ? name === hostname : matches(name, hostname)) return undefined;
  }
  if (!named && !isIP(hostname) && cert.subject?.CN) {
    if (matches(`${cert.subject.CN}`, hostname)) return undefined;
    reason = `Host: ${hostname}. is not cert's CN: ${cert.subject.CN}`;
  }
  const error = coded(Error, "ERR_TLS_CERT_ALTNAME_INVALID", `Hostname/IP does not match certificate's altnames: ${reason}`);
  return put(error, { reason, host: hostname, cert });
}

const SUITES = ["tls_aes_128_gcm_sha256", "tls_aes_256_gcm_sha384", "tls_chacha20_poly1305_sha256", "ecdhe-ecdsa-aes128-gcm-sha256",
  "ecdhe-ecdsa-aes256-gcm-sha384", "ecdhe-ecdsa-chacha20-poly1305", "ecdhe-rsa-aes128-gcm-sha256", "ecdhe-rsa-aes256-gcm-sha384",
  "ecdhe-rsa-chacha20-poly1305"];

class Server extends builtin("net").Server {
  addContext() { throw net.noServer(); }
}

internal.nodeModules.tls = put({}, {
  CLIENT_RENEG_LIMIT: 3, CLIENT_RENEG_WINDOW: 600, DEFAULT_CIPHERS: primordials.ArrayPrototypeJoin(SUITES, ":"), DEFAULT_ECDH_CURVE: "auto",
  DEFAULT_MIN_VERSION: "TLSv1.2", DEFAULT_MAX_VERSION: "TLSv1.3", rootCertificates: [],
  SecureContext: callable(SecureContext), TLSSocket: callable(TLSSocket), Server: callable(Server), connect, createSecureContext,
  checkServerIdentity,
  createServer(options, listener) { return new Server(options, listener); },
  getCiphers() { return primordials.ArrayPrototypeSlice(SUITES); },
  getCACertificates() { return []; },
  convertALPNProtocols(protocols, out) {
    if (ArrayIsArray(protocols)) {
      const parts = [];
      for (let i = 0; i < protocols.length; i++) {
        const bytes = Buffer.from(protocols[i]);
        parts[parts.length] = Buffer.from([bytes.length]);
        parts[parts.length] = bytes;
      }
      out.ALPNProtocols = Buffer.concat(parts);
    } else if (internal.isBufferSource(protocols)) out.ALPNProtocols = Buffer.from(protocols);
  },
});
