// node/http.js is node:http.

"use strict";

const { Proxy, ReflectConstruct } = primordials;
const { checks, http, put } = internal.node;

// Node's classes can be called without new.
const callable = (Class) => {
  const made = new Proxy(Class, { __proto__: null, apply: (_, self, args) => ReflectConstruct(Class, args) });
  internal.node.hide(Class.prototype, "constructor", made);
  return made;
};

const { Agent, ClientRequest, IncomingMessage, METHODS, OutgoingMessage, STATUS_CODES, Server, ServerResponse } = http;
const PublicAgent = callable(Agent);
const PublicServer = callable(Server);
http.PublicServer = PublicServer;
http.PublicAgent = PublicAgent;

function request(url, options, callback) { return new ClientRequest(url, options, callback); }

const module = put({}, {
  METHODS, STATUS_CODES, Agent: PublicAgent, ClientRequest: callable(ClientRequest), IncomingMessage: callable(IncomingMessage),
  OutgoingMessage: callable(OutgoingMessage), Server: PublicServer, ServerResponse: callable(ServerResponse),
  createServer(options, listener) { return new Server(options, listener); },
  validateHeaderName: http.validateHeaderName, validateHeaderValue: http.validateHeaderValue,
  get(url, options, callback) {
    const req = request(url, options, callback);
    req.end();
    return req;
  },
  request, maxHeaderSize: 16384, globalAgent: http.globalAgent,
  setMaxIdleHTTPParsers(max) { checks.integer(max, "max", 1); },
});
// Node has these of the web platform in the module, too.
const web = (name) => { internal.node.later(module, name, () => primordials.ReflectGet(primordials.globalThis, name)); };
web("CloseEvent");
web("MessageEvent");
web("WebSocket");
internal.nodeModules.http = module;
